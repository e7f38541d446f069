// A line to a server that a test can cut and mend: the page is opened at the line's address.
import { createServer, connect, type Server as Listener, type Socket } from "node:net";

export class Line {
  private readonly sockets = new Set<Socket>();
  private isCut = false;
  private listener: Listener | null = null;
  url = "";

  constructor(private readonly to: string) {}

  async open(): Promise<void> {
    const port = Number(new URL(this.to).port);
    this.listener = createServer((near) => {
      if (this.isCut) return void near.destroy();
      const far = connect(port, "127.0.0.1");
      for (const [one, other] of [[near, far], [far, near]] as const) {
        this.sockets.add(one);
        one.pipe(other);
        one.on("error", () => other.destroy());
        one.on("close", () => {
          this.sockets.delete(one);
          other.destroy();
        });
      }
    });
    await new Promise<void>((resolve) => this.listener?.listen(0, "127.0.0.1", resolve));
    const address = this.listener.address();
    this.url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  }

  cut(): void {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend(): void {
    this.isCut = false;
  }

  close(): void {
    this.cut();
    this.listener?.close();
  }
}
