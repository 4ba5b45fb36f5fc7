import Testing

@testable import CacheStore

@Suite("A request for the disk")
struct ReadQueueTests {
    private typealias Readers = ReadQueue.Readers

    private func readers(asleep: Int, beingWoken: Int = 0, reading: Int = 0) -> Readers {
        var readers = Readers()
        readers.asleep = asleep
        readers.beingWoken = beingWoken
        readers.reading = reading
        return readers
    }

    @Test func `wakes a reader where none is awake`() {
        var readers = readers(asleep: 2)
        let first = readers.wakes(for: 1)
        #expect(first)
        #expect(readers.beingWoken == 1)
        // The reader that is being woken takes this one, too.
        let second = readers.wakes(for: 2)
        #expect(!second)
    }

    @Test func `wakes no thread if all are awake`() {
        var readers = readers(asleep: 0, reading: 2)
        let wakes = readers.wakes(for: 100)
        #expect(!wakes)
    }

    @Test func `is left to a reader that is awake, as long as few wait`() {
        var readers = readers(asleep: 1, reading: 1)
        for waiting in 1...Readers.requestsEach {
            let wakes = readers.wakes(for: waiting)
            #expect(!wakes, "\(waiting)")
        }
        let wakes = readers.wakes(for: Readers.requestsEach + 1)
        #expect(wakes)
    }

    @Test func `wakes a reader at once while the device is slow`() {
        var readers = readers(asleep: 1, reading: 1)
        readers.ended(after: Readers.slowMicroseconds)
        readers.reading += 1
        let wakes = readers.wakes(for: 1)
        #expect(wakes)
        #expect(readers.slowReads == 64)
        for _ in 0..<64 {
            readers.ended(after: 10)
            readers.reading += 1
        }
        readers.wokeUp()
        readers.fellAsleep()
        let wakesLater = readers.wakes(for: 1)
        #expect(!wakesLater)
    }

    @Test func `never wakes more readers than sleep`() {
        var readers = readers(asleep: 3)
        readers.slowReads = 64
        let woken = (1...10).filter { readers.wakes(for: $0) }.count
        #expect(woken == 3)
        for _ in 0..<3 { readers.wokeUp() }
        #expect(readers.asleep == 0)
        #expect(readers.beingWoken == 0)
    }
}
