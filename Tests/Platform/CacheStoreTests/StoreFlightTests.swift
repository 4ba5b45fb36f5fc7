import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

@Suite("Requests under way whose responses may be stored")
struct StoreFlightTests {
    @Test func `an invalidation voids the stores of its key and of no other`() throws {
        let store = CacheStore(options: .small())
        let urls = (0..<2000).map { "http://a/\($0)" }
        let flights = urls.map { store.flight($0) }
        // So many other keys that a table with fewer slots than keys would have collisions
        // everywhere.
        for number in 0..<100_000 { store.drop("http://b/\(number)") }
        store.drop(urls[7])
        var refused: [String] = []
        for (url, flight) in zip(urls, flights) {
            do throws(StoreRefusalReason) {
                let ticket = try store.begin(url, length: 1, flight: flight)
                #expect(body(1).withUnsafeBytes { ticket.append($0) })
                #expect(ticket.finish().response != nil)
            } catch {
                #expect(error == .invalidated)
                refused.append(url)
            }
        }
        #expect(refused == [urls[7]])
        #expect(store.memory.flightCount == 0)
    }

    @Test func `two requests for one key are both voided`() {
        var flights = StoreFlights()
        let all = [flights.begin(5), flights.begin(6), flights.begin(5)]
        flights.void(5)
        #expect(all.map { flights.isValid($0) } == [false, true, false])
        let later = flights.begin(5)
        #expect(flights.isValid(later))
        flights.voidAll()
        #expect(!flights.isValid(later))
    }

    @Test func `the one whose response invalidates the others is spared, unless it is void`() {
        var flights = StoreFlights()
        let all = [flights.begin(5), flights.begin(6), flights.begin(5)]
        flights.void(5, except: all[2])
        #expect(all.map { flights.isValid($0) } == [false, true, true])
        flights.void(5, except: all[0])
        #expect(all.map { flights.isValid($0) } == [false, true, false])
        flights.void(5, except: all[2])
        #expect(!flights.isValid(all[2]))
    }

    @Test func `one of another key, in the same slot of another shard, spares nothing`() {
        var (one, other) = (StoreFlights(), StoreFlights())
        let (posted, asked) = (one.begin(5), other.begin(6))
        #expect(posted.slot == asked.slot)
        other.void(6, except: posted)
        #expect(!other.isValid(asked))
    }

    @Test func `a flight that has ended is not mistaken for the one in its slot`() {
        var flights = StoreFlights()
        let first = flights.begin(5)
        flights.end(first)
        let second = flights.begin(5)
        #expect(second.slot == first.slot)
        flights.end(first)
        #expect(!flights.isValid(first))
        #expect(flights.isValid(second))
        let landed = [flights.land(second), flights.land(second)]
        #expect(landed == [true, false])
        #expect(flights.count == 0)
    }

    @Test func `slots are reused, in whatever order flights begin and end`() {
        var flights = StoreFlights()
        var random = SeededRandom(seed: 11)
        var live: [(flight: StoreFlight, isVoid: Bool)] = []
        for _ in 0..<20_000 {
            switch random.next() % 8 {
            case 0...3 where live.count < 300:
                live.append((flights.begin(random.next() % 40), false))
            case 4:
                let hash = random.next() % 40
                flights.void(hash)
                for index in live.indices where live[index].flight.hash == hash {
                    live[index].isVoid = true
                }
            default:
                guard !live.isEmpty else { continue }
                let index = Int(random.next() % UInt64(live.count))
                let (flight, isVoid) = live.remove(at: index)
                let isValid = flights.land(flight)
                #expect(isValid == !isVoid)
            }
            #expect(flights.count == live.count)
        }
        #expect(live.allSatisfy { flights.isValid($0.flight) == !$0.isVoid })
    }

    @Test func `a ticket ends its flight however it ends`() throws {
        let store = CacheStore(options: .small())
        _ = try store.begin("http://a/", length: 3, flight: store.flight("http://a/"))
        #expect(store.memory.flightCount == 0)
        let abandoned = try store.begin("http://a/", length: 3)
        #expect(store.memory.flightCount == 1)
        abandoned.abandon()
        #expect(store.memory.flightCount == 0)
        let longer = try store.begin("http://a/", length: 3)
        #expect(body(4).withUnsafeBytes { !longer.append($0) })
        #expect(store.memory.flightCount == 0)
        #expect(throws: StoreRefusalReason.tooLarge) {
            _ = try store.begin(
                "http://a/", length: 1 << 40, flight: store.flight("http://a/"))
        }
        #expect(store.memory.flightCount == 0)
    }
}
