"""Maps: what Linux's documentation says of each type, from the programs' side and from Python's."""

from __future__ import annotations

import random
from collections import OrderedDict

import pytest

from kprobes import ProgramError
from kprobes.programs.maps import ANY, EXIST, NOEXIST, MapType, Spec, create

pytestmark = pytest.mark.quick
ENOENT, E2BIG, EEXIST, EINVAL = -2, -7, -17, -22
HASHES = (MapType.HASH, MapType.LRU_HASH, MapType.PERCPU_HASH, MapType.LRU_PERCPU_HASH)


def make(type, key=4, value=8, entries=4, **more):
    return create(Spec(type=type, name="m", key_size=key, value_size=value, max_entries=entries, **more))


def word(n, size=4):
    return n.to_bytes(size, "little")


def test_arrays():
    m = make(MapType.ARRAY)
    assert [m[i] for i in m] == [0] * 4 and len(m) == 4
    assert m.update_elem(word(1), word(5, 8), ANY) == 0
    assert m.update_elem(word(1), word(5, 8), EXIST) == 0
    assert m.update_elem(word(1), word(5, 8), NOEXIST) == EEXIST
    assert m.update_elem(word(4), word(5, 8), ANY) == E2BIG
    assert m.update_elem(word(1), word(5, 8), 3) == EINVAL
    assert m.delete_elem(word(1)) == EINVAL
    assert m.lookup_elem(word(4)) == 0
    assert m.lookup_elem(word(2)) - m.lookup_elem(word(1)) == 8
    assert dict(m) == {0: 0, 1: 5, 2: 0, 3: 0}
    m[3] = -1
    assert m[3] == (1 << 64) - 1
    with pytest.raises(KeyError):
        m[4]
    with pytest.raises(TypeError, match="cannot be deleted"):
        del m[1]


def test_values_are_aligned_and_their_extents_exact():
    m = make(MapType.ARRAY, value=12)
    a, b = m.lookup_elem(word(0)), m.lookup_elem(word(1))
    assert (b - a, a % 8) == (16, 0)
    assert m.extent(a + 11) == (a, a + 12) and m.extent(a + 12) is None and m.extent(b) == (b, b + 12)
    h = make(MapType.PERCPU_HASH, key=5, value=12, cpus=2)
    h.update_elem(b"abcde", bytes(12))
    for cpu in range(2):
        at = h.lookup_elem(b"abcde", cpu)
        assert h.extent(at) == h.extent(at + 11) == (at, at + 12)
        assert h.extent(at + 12) is None
    assert h.extent(h.lookup_elem(b"abcde") - 1) is None  # the key


@pytest.mark.parametrize("type", [MapType.PERCPU_ARRAY, MapType.PERCPU_HASH])
def test_values_of_each_cpu(type):
    m = make(type, cpus=3)
    for cpu in range(3):
        assert m.update_elem(word(1), word(10 + cpu, 8), ANY, cpu) == 0
    assert m[1] == [10, 11, 12]
    m[1] = [1, 2, 3]
    assert m[1] == [1, 2, 3]
    with pytest.raises(ValueError, match="2 values for 3 CPUs"):
        m[1] = [1, 2]
    if type is MapType.PERCPU_HASH:
        m.update_elem(word(9), word(7, 8), ANY, 1)
        assert m[9] == [0, 7, 0]  # the others are zeroed


@pytest.mark.parametrize("type", HASHES)
def test_hash_tables_are_mappings(type):
    m = make(type, entries=3)
    assert m.lookup_elem(word(1)) == 0 and m.delete_elem(word(1)) == ENOENT
    assert m.update_elem(word(1), word(5, 8), EXIST) == ENOENT
    assert m.update_elem(word(1), word(5, 8), NOEXIST) == 0
    assert m.update_elem(word(1), word(6, 8), NOEXIST) == EEXIST
    assert m.update_elem(word(1), word(6, 8), EXIST) == 0
    assert m.update_elem(word(1), word(6, 8), 3) == EINVAL
    assert (m[1] if not m.percpu else m[1][0]) == 6 and 1 in m and 2 not in m and len(m) == 1
    with pytest.raises(KeyError):
        m[2]
    del m[1]
    with pytest.raises(KeyError):
        del m[1]
    assert not m


def test_a_full_table():
    m = make(MapType.HASH, entries=2)
    m[1], m[2] = 1, 2
    assert m.update_elem(word(3), word(3, 8)) == E2BIG
    assert m.update_elem(word(2), word(9, 8)) == 0
    with pytest.raises(ValueError, match="all 2 entries"):
        m[3] = 3
    assert dict(m) == {1: 1, 2: 9}


def test_addresses_stay_while_others_come_and_go():
    m = make(MapType.HASH, entries=64)
    m[7] = 70
    at = m.lookup_elem(word(7))
    for n in range(100, 160):
        m[n] = n
    for n in range(100, 160, 2):
        del m[n]
    assert m.lookup_elem(word(7)) == at and m[7] == 70


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("key", [1, 4, 8, 13])
def test_a_table_against_a_dictionary(seed, key):
    rng = random.Random(seed)
    m, model = make(MapType.HASH, key=key, entries=50), {}
    keys = [rng.randbytes(key) for _ in range(80)]
    for _ in range(1500):
        k, v = rng.choice(keys), rng.randbytes(8)
        if rng.random() < 0.6:
            full = k not in model and len(model) == 50
            assert m.update_elem(k, v) == (E2BIG if full else 0)
            if not full:
                model[k] = v
        else:
            assert m.delete_elem(k) == (0 if model.pop(k, None) is not None else ENOENT)
        assert len(m) == len(model)
    assert {m.key_codec.store(k): m.value_codec.store(v) for k, v in m.items()} == model
    assert all(bool(m.lookup_elem(k)) == (k in model) for k in keys)


def test_what_was_not_used_lately_is_evicted():
    m = make(MapType.LRU_HASH, entries=4)
    for n in range(4):
        m.update_elem(word(n), word(n, 8))
    for n in (1, 3):
        assert m.lookup_elem(word(n))
    m.update_elem(word(10), word(10, 8))
    m.update_elem(word(11), word(11, 8))
    assert set(m) == {1, 3, 10, 11}
    assert m.update_elem(word(12), word(12, 8)) == 0 and len(m) == 4 and 12 in m


def test_eviction_under_load_is_close_to_least_recently_used():
    rng = random.Random(7)
    m, lru, hits, ideal = make(MapType.LRU_HASH, entries=32), OrderedDict(), 0, 0
    for _ in range(4000):
        n = min(int(rng.expovariate(1 / 20)), 200)
        hits += bool(m.lookup_elem(word(n)))
        ideal += n in lru
        if n in lru:
            lru.move_to_end(n)
        else:
            lru[n] = 1
            if len(lru) > 32:
                lru.popitem(last=False)
        m.update_elem(word(n), word(1, 8))
        assert len(m) <= 32
    assert hits > 0.9 * ideal


def test_ring_buffers():
    m = make(MapType.RINGBUF, key=0, value=0, entries=4096)
    assert m.size == 4096
    assert m.output(b"one") and m.output(b"") and m.output(b"x" * 100)
    assert [len(r) for r in m] == [3, 0, 100] and list(m) == []
    first, second = m.reserve(8), m.reserve(8)
    m.commit(second)
    assert list(m) == []  # the first is not complete yet
    m.commit(first, discard=True)
    assert list(m) == [bytes(8)]
    assert (m.query(0), m.query(1), m.query(2), m.query(3), m.query(9)) == (0, 4096, m.query(3), m.query(2), 0)


def test_a_full_ring_buffer_loses_records_and_counts_them():
    m = make(MapType.RINGBUF, key=0, value=0, entries=4096)
    assert m.reserve(4089) == 0 and m.reserve(1 << 40) == 0
    n = 0
    while m.output(bytes([n]) * 100):
        n += 1
    assert n == 4096 // 112 and m.lost == 3
    for record in m:  # records are consumed while they are made: through the end of the buffer many times
        assert record == bytes([record[0]]) * 100
        if n < 200:
            n += 1
            assert m.output(bytes([n]) * 100)
    assert n == 200 and m.lost == 3


def test_a_ring_buffer_that_overwrites_keeps_the_newest():
    m = make(MapType.RINGBUF, key=0, value=0, entries=4096, flags=1 << 19)
    assert m.reserve(4089) == 0 and m.reserve(1 << 40) == 0 and m.lost == 2
    for n in range(200):
        assert m.output(bytes([n]) * (n % 100))
    kept = [*m]
    assert kept == [bytes([n]) * (n % 100) for n in range(200 - len(kept), 200)] and m.lost == 2 + 200 - len(kept)
    record = m.reserve(4000)
    assert record and m.reserve(200) == 0  # what is not complete stays
    m.commit(record, discard=True)
    assert m.output(bytes(200)) and m.lost == 203 - len(kept) and [*m] == [bytes(200)]


def test_perf_event_arrays():
    m = make(MapType.PERF_EVENT_ARRAY, key=4, value=4, entries=0)
    m.output(b"abc", 0)
    m.output(b"defgh", 1)
    assert list(m) == [b"abc", b"defgh"]


def test_queues_and_stacks():
    for type, order in ((MapType.QUEUE, [1, 2, 3]), (MapType.STACK, [3, 2, 1])):
        m = make(type, key=0, entries=3)
        assert m.pop_elem() is None and m.peek_elem() is None
        for n in (1, 2, 3):
            assert m.push_elem(word(n, 8)) == 0
        assert m.push_elem(word(4, 8)) == E2BIG and m.push_elem(word(4, 8), NOEXIST) == EINVAL
        assert list(m) == order and len(m) == 3
        assert m.peek_elem() == word(order[0], 8) == m.pop_elem()
        m.push(9)
        with pytest.raises(ValueError, match="all 3 entries"):
            m.push(9)
        assert m.push_elem(word(10, 8), EXIST) == 0  # the oldest goes
        assert list(m) == ([3, 9, 10] if type is MapType.QUEUE else [10, 9, 2])
        assert m.pop() == (3 if type is MapType.QUEUE else 10)


def test_stack_traces():
    m = make(MapType.STACK_TRACE, value=32, entries=1)
    number = m.number([1, 2, 3], 0)
    assert m.number([1, 2, 3], 0) == number == 0 and m[0] == (1, 2, 3)
    assert m.number([1, 2], 0) == EEXIST
    assert m.number([1, 2], 1 << 9) == 0 and m[0] == (1, 2, 3)
    assert m.number([9, 8, 7, 6, 5], 1 << 10) == 0 and m[0] == (9, 8, 7, 6)
    assert m.delete_elem(word(0)) == 0 and m.delete_elem(word(0)) == ENOENT and not m


def test_a_stack_trace_is_deleted_by_its_number_in_the_program_s_byte_order():
    m = make(MapType.STACK_TRACE, value=32, entries=1024, order="big")
    number = m.number([1, 2, 3], 0)
    assert 0 < number < 1024
    assert m.delete_elem(number.to_bytes(4, "little")) == ENOENT
    assert m.delete_elem(number.to_bytes(4, "big")) == 0 and not m


@pytest.mark.parametrize("spec, reason", [
    ({"type": 15}, "no maps of type 15 here; use one of ARRAY,.* HASH"), ({"type": MapType.ARRAY, "key": 8}, "4-byte keys"),
    ({"type": MapType.ARRAY, "value": 0}, "4-byte keys"), ({"type": MapType.HASH, "entries": 0}, "at least one entry"),
    ({"type": MapType.HASH, "entries": 1 << 31}, "the most; make max_entries smaller"),
    ({"type": MapType.RINGBUF, "value": 0}, "neither keys"),
    ({"type": MapType.RINGBUF, "key": 0, "value": 0, "entries": 1 << 31}, "the most"),
    ({"type": MapType.QUEUE}, "no keys"),
    ({"type": MapType.STACK_TRACE, "value": 1024}, "8 to 1016"), ({"type": MapType.PERF_EVENT_ARRAY, "value": 8},
                                                                  "4 bytes"),
])
def test_maps_that_there_cannot_be(spec, reason):
    with pytest.raises(ProgramError, match=f"map m: .*{reason}"):
        make(**spec)


def test_how_maps_show_themselves():
    m = make(MapType.HASH, entries=100)
    m[1] = 2
    assert repr(m) == "<hash map m {1: 2}>"
    for n in range(40):
        m[n] = n
    assert repr(m).endswith(", ...}>")
    assert repr(make(MapType.RINGBUF, key=0, value=0, entries=4096)) == "<ringbuf map m>"
