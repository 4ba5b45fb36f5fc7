import HTTPCore
import Testing

@Suite("A list by age")
struct AgeListTests {
    private struct Slot: AgeLinked {
        var newer: Int32 = -1
        var older: Int32 = -1
    }

    /// The slots of a list, the oldest first, as each direction has them.
    private func order(
        _ list: AgeList, _ slots: ContiguousArray<some AgeLinked>
    ) -> (forward: [Int32], backward: [Int32]) {
        var (forward, backward): ([Int32], [Int32]) = ([], [])
        var slot = list.oldest
        while slot >= 0, forward.count <= slots.count {
            forward.append(slot)
            slot = slots[Int(slot)].newer
        }
        slot = list.newest
        while slot >= 0, backward.count <= slots.count {
            backward.append(slot)
            slot = slots[Int(slot)].older
        }
        return (forward, backward.reversed())
    }

    /// Every sequence of this many steps with three slots in two lists: each step links a slot that
    /// is in neither list into one of them, or renews or unlinks one that is in a list.
    private func runAll<Element: AgeLinked>(
        steps: Int, _ slots: ContiguousArray<Element>, _ lists: [AgeList], _ model: [[Int32]]
    ) -> Int {
        for list in lists.indices {
            let (forward, backward) = order(lists[list], slots)
            guard forward == model[list], backward == model[list] else { return -1_000_000 }
        }
        guard steps > 0 else { return 1 }
        var runs = 0
        for slot in slots.indices.map(Int32.init) {
            for list in lists.indices {
                let isIn = model[list].contains(slot)
                guard isIn || !model.contains(where: { $0.contains(slot) }) else { continue }
                for renews in isIn ? [true, false] : [true] {
                    var (slots, lists, model) = (slots, lists, model)
                    model[list].removeAll { $0 == slot }
                    if renews { model[list].append(slot) }
                    if !isIn {
                        lists[list].link(slot, in: &slots)
                    } else if renews {
                        lists[list].renew(slot, in: &slots)
                    } else {
                        lists[list].unlink(slot, in: &slots)
                    }
                    runs += runAll(steps: steps - 1, slots, lists, model)
                }
            }
        }
        return runs
    }

    @Test func `does what an array does, in every order of steps`() {
        // Each slot can be linked into either list, or renewed or unlinked: six steps at any time.
        let slots = ContiguousArray(repeating: Slot(), count: 3)
        let lists = [AgeList(), AgeList()]
        #expect(runAll(steps: 6, slots, lists, [[], []]) == 46_656)
    }

    @Test func `may run through a table with free slots`() {
        let slots = ContiguousArray<Slot?>(repeating: Slot(), count: 3)
        #expect(runAll(steps: 4, slots, [AgeList(), AgeList()], [[], []]) == 1296)
        var free: Slot?
        (free.newer, free.older) = (1, 2)
        #expect(free.newer == -1 && free.older == -1)
    }
}
