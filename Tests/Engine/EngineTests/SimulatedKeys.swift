import CachePolicy

@testable import PinfoldEngine

/// Ensures that the cache keys of a world use separate slots where keys share slots by their
/// hashes: hashes differ from process to process, but a seed must always give the same world.
struct SimulatedKeys {
    private var flights: Set<Int> = []

    /// A path, of the same length whichever it is, whose keys share nothing with earlier ones.
    mutating func path(host: String, index: Int) -> String {
        var path = ""
        for candidate in 10..<100 {
            path = "/\(index)\(candidate)"
            if take(scheme: host == "b.test" ? "https" : "http", host, path) { break }
        }
        return path
    }

    private mutating func take(scheme: String, _ host: String, _ path: String) -> Bool {
        let key = CacheKey(bytes: Array("\(scheme)://\(host)\(path)".utf8))
        let places = FlightTable<Exchange>.defaultSlotCount / FlightTable<Exchange>.ways
        let mask = UInt64(places - 1)
        let flights = Set(CacheRoute.all.map { Int(key.along($0).hash & mask) })
        guard self.flights.isDisjoint(with: flights) else { return false }
        self.flights.formUnion(flights)
        return true
    }
}
