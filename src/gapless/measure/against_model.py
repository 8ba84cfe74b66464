"""What the model of a robot says about a log: whether a replay or a fit would let it in, and whether it is wired alike."""

from gapless.errors import BadInput, PhysicsError
from gapless.logs import ERROR, INFO, WARNING, Finding, Log
from gapless.measure.admission import admitted_part
from gapless.measure.comparable import commands_for
from gapless.measure.wiring import wiring_findings
from gapless.twin import Twin


def model_findings(twin: Twin, log: Log) -> list[Finding]:
    """What is wrong with a log beside a model that moves; where both cannot be compared, only why."""
    try:
        commands_for(twin, log)
    except BadInput as error:
        return [Finding("not_compared", INFO, f"not compared with the motion of the model: {error}")]
    try:
        _, notes = admitted_part(twin, log)
    except (BadInput, PhysicsError) as error:
        return [Finding("refused", ERROR, f"replay and fit would refuse it: {_plain(log, str(error))}")]
    return [*(Finding("odd", WARNING, _plain(log, note)) for note in notes), *wiring_findings(twin, log)]


def _plain(log: Log, sentence: str) -> str:
    """A sentence without the name of the log, which an inspection says once."""
    return sentence.removeprefix(f"{log.name}: ")
