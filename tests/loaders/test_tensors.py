"""Arrow columns become tensors as the documented table says, row by row."""

import copy
import pickle

import pyarrow as pa
import pytest
import torch

from pipeprof.loaders.dataset.arrow_arrays import to_arrays
from pipeprof.loaders.dataset.batching import make_batch
from pipeprof.loaders.tensors import Batch, Ragged


def to_tensors(table, null_masks=False):
    return make_batch(to_arrays(table, null_masks), 0, table.num_rows)


def tensor_of(values, kind, **options):
    table = pa.record_batch([pa.array(values, kind)], names=["x"])
    return to_tensors(table, **options)["x"]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, -(2**63), 2**63 - 1], pa.int64(), torch.int64),
        ([0, 255], pa.uint8(), torch.uint8),
        ([1, -1], pa.int16(), torch.int16),
        ([0.5, -1e30], pa.float32(), torch.float32),
        ([0.1, 1e300], pa.float64(), torch.float64),
        ([True, False], pa.bool_(), torch.bool),
    ],
)
def test_scalars_keep_their_width(values, kind, expected):
    tensor = tensor_of(values, kind)
    assert tensor.dtype == expected
    assert tensor.tolist() == pa.array(values, kind).to_pylist()


def test_nulls_become_nan_zero_and_false():
    assert tensor_of([1.5, None], pa.float32()).isnan().tolist() == [False, True]
    assert tensor_of([7, None], pa.int32()).tolist() == [7, 0]
    assert tensor_of([True, None], pa.bool_()).tolist() == [True, False]


def test_null_masks_tell_them_apart_from_real_zeros():
    table = pa.record_batch([pa.array([0, None])], names=["x"])
    batch = to_tensors(table, null_masks=True)
    assert batch["x"].tolist() == [0, 0]
    assert batch["x.null"].tolist() == [False, True]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_text_and_bytes_are_ragged_bytes(kind):
    ragged = tensor_of(["ab", "", None, "é"], kind)
    assert ragged.values.dtype == torch.uint8
    assert [ragged.bytes_at(row) for row in range(4)] == [b"ab", b"", b"", "é".encode()]


def test_lists_of_fixed_size_are_a_matrix():
    matrix = tensor_of([[1, 2], [3, 4], None], pa.list_(pa.int64(), 2))
    assert matrix.tolist() == [[1, 2], [3, 4], [0, 0]]
    nan = tensor_of([None, [1.0, 2.0]], pa.list_(pa.float32(), 2))
    assert nan[0].isnan().all()
    assert nan[1].tolist() == [1.0, 2.0]


def test_lists_are_ragged():
    ragged = tensor_of([[1, 2, 3], [], None, [4]], pa.list_(pa.int64()))
    assert [ragged[row].tolist() for row in range(len(ragged))] == [[1, 2, 3], [], [], [4]]
    assert ragged[-1].tolist() == [4]
    with pytest.raises(IndexError):
        ragged[4]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 3, 4], pa.int64()),
        (["a", "bc", None, "def"], pa.string()),
        ([[1], [2, 3], None, [4, 5, 6]], pa.list_(pa.int64())),
        ([[1, 2], [3, 4], None, [5, 6]], pa.list_(pa.int64(), 2)),
    ],
)
def test_a_slice_of_a_table_is_that_slice(values, kind):
    """Batches are slices of decoded tables, so their buffers begin earlier."""
    whole = pa.record_batch([pa.array(values, kind)], names=["x"])
    rows = slice(1, 4)
    fresh = pa.record_batch([pa.array(values[rows], kind)], names=["x"])
    sliced, expected = to_tensors(whole.slice(1, 3))["x"], to_tensors(fresh)["x"]
    if isinstance(expected, Ragged):
        assert sliced.offsets.tolist() == expected.offsets.tolist()
        sliced, expected = sliced.values, expected.values
    assert sliced.tolist() == expected.tolist()


def test_no_rows():
    for kind in (pa.int64(), pa.string(), pa.list_(pa.int64()), pa.list_(pa.int64(), 3)):
        assert len(tensor_of([], kind)) == 0


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], pa.int64()),
        ([0.5, 1.5, None], pa.float32()),
        ([True, False, True], pa.bool_()),
        (["a", "b", "c"], pa.string()),
        ([[1], [2, 3], []], pa.list_(pa.int64())),
        ([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2)),
    ],
)
def test_tensors_may_be_written_into(values, kind):
    """Arrow's own views are read-only, and torch would warn of them."""
    tensor = tensor_of(values, kind)
    numbers = tensor.values if isinstance(tensor, Ragged) else tensor
    numbers[0] = 0
    assert not numbers[0].any()


def test_numbers_are_not_copied():
    column = pa.array([1, 2, 3])
    tensor = to_tensors(pa.record_batch([column], names=["x"]))["x"]
    assert tensor.data_ptr() == column.buffers()[1].address


def test_ragged_moves_as_a_tensor_does():
    ragged = Ragged(torch.tensor([1, 2]), torch.tensor([0, 2]))
    assert ragged.to(torch.float32).values.dtype == torch.float32


@pytest.mark.parametrize("small", [0, 2**20])
def test_a_batch_travels_to_another_process_in_one_piece_and_arrives_the_same(small, monkeypatch):
    monkeypatch.setattr("pipeprof.loaders.tensors._SMALL_BYTES", small)
    table = pa.record_batch(
        {
            "id": pa.array([1, 2, None]),
            "name": pa.array(["a", "", "longer"]),
            "flag": pa.array([True, False, True]),
            "pair": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
            "none": pa.array([[], [], []], pa.list_(pa.int64())),
        }
    )
    batch = to_tensors(table, null_masks=True)
    batch["what the user adds"] = {"any": "thing"}
    batch["scalar"] = torch.tensor(2.5)
    _, (flat, _, rest) = batch.__reduce__()
    assert isinstance(flat, bytes if small else torch.Tensor)
    assert [name for name, value in rest.items() if value is not None] == ["what the user adds"]
    arrived = pickle.loads(pickle.dumps(batch))
    assert type(arrived) is Batch
    assert list(arrived) == list(batch)
    for name, value in batch.items():
        if isinstance(value, Ragged):
            assert torch.equal(arrived[name].values, value.values)
            assert torch.equal(arrived[name].offsets, value.offsets)
        elif isinstance(value, torch.Tensor):
            assert arrived[name].dtype == value.dtype
            assert torch.equal(arrived[name].nan_to_num(), value.nan_to_num())
        else:
            assert arrived[name] == value


def test_an_empty_batch_travels_too():
    assert pickle.loads(pickle.dumps(Batch())) == {}


def test_a_copy_shares_tensors_and_stays_a_batch():
    """torch's default_convert and pin_memory copy a mapping, then replace its values."""
    batch = Batch(x=torch.zeros(2))
    twin = copy.copy(batch)
    assert type(twin) is Batch
    assert twin["x"] is batch["x"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([{"a": 1}, None, {"a": 3}], pa.struct([("a", pa.int64())])),
        ([["x", "y"], None, []], pa.list_(pa.string())),
        ([[b"x"], None, [b"z"]], pa.list_(pa.binary(), 1)),
        ([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    ],
)
def test_what_has_no_tensor_form_stays_an_arrow_array(values, kind):
    """Alone of its rows, so that a batch does not take those around it to another process."""
    table = pa.record_batch([pa.array(values * 1000, kind)], names=["x"])
    batch = make_batch(to_arrays(table, null_masks=True), 3, 6)
    assert batch["x"].to_pylist() == pa.array(values, kind).to_pylist()
    assert batch["x.null"].tolist() == [value is None for value in values]
    assert len(pickle.dumps(batch)) < 3000
    assert pickle.loads(pickle.dumps(batch))["x"].equals(batch["x"])
