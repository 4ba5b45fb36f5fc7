import Testing

@testable import EventLoop

@Suite("A first-in, first-out queue")
struct FIFOTests {
    @Test func `what came first leaves first`() {
        var queue = FIFO<Int>()
        #expect(queue.isEmpty)
        #expect(queue.popFirst() == nil)
        var (next, expected) = (0, 0)
        // Grows and shrinks many times, beyond the number of removed elements that it keeps.
        for round in 0..<200 {
            for _ in 0..<(round % 7 + 1) {
                queue.append(next)
                next += 1
            }
            for _ in 0..<(round % 5) where !queue.isEmpty {
                #expect(queue.first == expected)
                #expect(queue.popFirst() == expected)
                expected += 1
            }
            #expect(queue.count == next - expected)
        }
    }

    @Test func `what is kept stays in its order`() {
        var queue = FIFO<Int>()
        for number in 0..<100 { queue.append(number) }
        for _ in 0..<10 { _ = queue.popFirst() }
        queue.keep { $0.isMultiple(of: 30) }
        #expect(queue.count == 3)
        #expect([queue.popFirst(), queue.popFirst(), queue.popFirst()] == [30, 60, 90])
        #expect(queue.isEmpty)
    }

    @Test func `what has left is not held`() {
        final class Thing {}
        var queue = FIFO<Thing>()
        weak var weakThing: Thing?
        do {
            let thing = Thing()
            weakThing = thing
            queue.append(thing)
            queue.append(Thing())
        }
        _ = queue.popFirst()
        #expect(weakThing == nil)
        #expect(queue.count == 1)
    }
}
