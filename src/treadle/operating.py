"""Running Treadle from Python beyond one engine: entities, workers, rules of queues, schedules, moving a store."""

from treadle.model.references import EntityRef
from treadle.runtime.operate.moving import move
from treadle.runtime.queue.queue_settings import QueueRules, read_rate
from treadle.runtime.schedule.definition import check_schedule
from treadle.runtime.worker import Worker

__all__ = ["EntityRef", "QueueRules", "Worker", "check_schedule", "move", "read_rate"]
