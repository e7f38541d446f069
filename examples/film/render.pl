#!/usr/bin/perl
# A worker in Perl, for a Worker node of a canvas: it takes a job at once, works, and answers later.
#
#   WEBHOOK_SECRET=whsec_… PORT=4802 perl render.pl
#
# It needs nothing but Perl. The message is {runId, nodeId, config, input, callbackUrl} (`payload: stitch`), signed after
# Standard Webhooks. Each message is worked on in a process of its own.
use strict;
use warnings;
use Digest::SHA qw(hmac_sha256_base64);
use HTTP::Tiny;
use IO::Socket::INET;
use JSON::PP;
use MIME::Base64;

$SIG{CHLD} = 'IGNORE';
$| = 1;
my ($secret) = ($ENV{WEBHOOK_SECRET} // '') =~ /^(?:whsec_)?(.*)$/;
my $key = decode_base64($secret);
my $port = $ENV{PORT} // 4802;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 16, ReuseAddr => 1) or die $!;
print $server->sockport, "\n";
my %taken;

sub is_signed {
    my ($headers, $body) = @_;
    my ($id, $at) = @$headers{qw(webhook-id webhook-timestamp)};
    return 0 unless defined $id && ($at // '') =~ /^\d+$/ && abs(time - $at) < 300;
    my $expected = hmac_sha256_base64("$id.$at.$body", $key);
    $expected .= '=' while length($expected) % 4;
    return scalar grep { $_ eq "v1,$expected" } split / /, $headers->{'webhook-signature'} // '';
}

sub work {
    my ($job) = @_;
    my $lines = $job->{input}{lines};
    my $answer = { status => 'completed', output => { film => 'film.mp4', seconds => $job->{config}{seconds} * @$lines } };
    for (my $pause = 1; ; $pause = $pause < 60 ? $pause * 2 : 60) {
        my $reply = HTTP::Tiny->new->post(
            $job->{callbackUrl},
            { headers => { 'Content-Type' => 'application/json' }, content => encode_json($answer) });
        return if $reply->{status} < 500;    # taken, or refused for good: 404, 409, 410, 422
        sleep $pause;
    }
}

while (1) {
    my $client = $server->accept or next;
    my $line = <$client> // '';
    my %headers;
    while (defined(my $header = <$client>)) {
        last if $header =~ /^\r?\n$/;
        $headers{lc $1} = $2 if $header =~ /^([^:]+):\s*(.*?)\r?\n$/;
    }
    read $client, my $body, $headers{'content-length'} // 0;
    my $ok = is_signed(\%headers, $body);
    print $client 'HTTP/1.1 ', ($ok ? '202 Accepted' : '401 Unauthorized'), "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    close $client;
    next if !$ok || $taken{$headers{'webhook-id'}}++;
    my $child = fork // die $!;
    next if $child;
    work(decode_json($body));
    exit 0;
}
