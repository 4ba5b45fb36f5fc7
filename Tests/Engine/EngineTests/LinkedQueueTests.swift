import Testing

@testable import PinfoldEngine

private final class Waiter: QueueMember {
    let name: Int
    var nextInQueue: Waiter?
    var previousInQueue: Waiter?
    init(_ name: Int) { self.name = name }
}

@Suite("A linked queue")
struct LinkedQueueTests {
    private func line(_ count: Int) -> (LinkedQueue<Waiter>, [Waiter]) {
        let line = LinkedQueue<Waiter>()
        let waiters = (0..<count).map { Waiter($0) }
        for waiter in waiters { line.append(waiter) }
        return (line, waiters)
    }

    private func drained(_ line: LinkedQueue<Waiter>) -> [Int] {
        var names: [Int] = []
        while let waiter = line.popFirst() { names.append(waiter.name) }
        return names
    }

    @Test func `they leave in the order in which they came`() {
        let (line, _) = line(3)
        #expect(line.count == 3)
        #expect(drained(line) == [0, 1, 2])
        #expect(line.isEmpty)
    }

    @Test(arguments: [[0], [1], [2], [0, 2], [2, 0], [1, 0], [0, 1, 2]])
    func `a member can be removed anywhere`(leaving: [Int]) {
        let (line, waiters) = line(3)
        for name in leaving { line.remove(waiters[name]) }
        #expect(line.count == 3 - leaving.count)
        #expect(drained(line) == [0, 1, 2].filter { !leaving.contains($0) })
    }

    @Test func `a member that left may be added again`() {
        let (line, waiters) = line(2)
        line.remove(waiters[0])
        line.append(waiters[0])
        #expect(drained(line) == [1, 0])
    }

    @Test func `a queue that was released keeps no members alive`() {
        weak var waiter: Waiter?
        do {
            let (_, waiters) = line(3)
            waiter = waiters[1]
        }
        #expect(waiter == nil)
    }
}
