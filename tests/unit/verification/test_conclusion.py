from orbit.verification._conclusion import execution_stage
from orbit.verification.execution import Execution, ExecutionStatus


def limit_of(status):
    run = Execution(name="timed", role="candidate", status=status, message="what happened", runtime_sec=1.0)
    (item,) = execution_stage([run], 900.0).evidence
    return item.limit


def test_the_time_limit_stands_beside_times_alone():
    assert limit_of(ExecutionStatus.OK) == limit_of(ExecutionStatus.TIMEOUT) == 900.0
    assert limit_of(ExecutionStatus.EXCEPTION) is None
    assert limit_of(ExecutionStatus.MEMORY) is None
