/// Where a route counts the status codes that its clients are sent, each by itself.
///
/// Codes that occur in practice have a cell in every route's block. A server may send any other
/// number of three digits: those have cells in a second block, which a route gets with the first of
/// them. There is a cell for every number, so that no traffic takes another code's place.
struct StatusCodes: @unchecked Sendable {
    /// What a status line can say (RFC 9112 §4).
    static var all: Range<Int> { 100..<1000 }

    /// The codes that the registry of IANA lists, and those that widely used servers send besides.
    static let common: [UInt16] = {
        let ranges: [ClosedRange<UInt16>] = [
            100...104, 200...208, 226...226, 300...308, 400...431, 440...440, 444...444, 449...449,
            451...451, 460...460, 463...463, 494...499, 500...511, 520...530, 561...561, 598...599,
        ]
        return ranges.flatMap { Array($0) }
    }()

    /// Room for all common codes.
    static var cells: Int { 96 }

    private static var none: UInt8 { .max }
    /// By the code less 100: its cell, or `none`. Made once, and never changed or freed.
    private nonisolated(unsafe) static let table: UnsafeMutablePointer<UInt8> = {
        let table = UnsafeMutablePointer<UInt8>.allocate(capacity: all.count)
        table.initialize(repeating: none, count: all.count)
        for (cell, code) in common.enumerated() {
            table[Int(code) - all.lowerBound] = UInt8(cell)
        }
        return table
    }()

    /// The table. Not an inline array, which the compiler copies for each look into it.
    private let places: UnsafeMutablePointer<UInt8>

    init() { places = Self.table }

    /// The cell of a common code; `nil` for any other number.
    @inline(__always)
    func cell(of status: UInt16) -> Int? {
        let index = Int(status) - Self.all.lowerBound
        guard index >= 0, index < Self.all.count, places[index] != Self.none else { return nil }
        return Int(places[index])
    }
}

extension RouteSeries {
    /// The status codes that the route's clients were sent, with their numbers.
    fileprivate var statusCodes: [(code: Int, count: UInt64)] {
        var counts: [(code: Int, count: UInt64)] = []
        for (cell, code) in StatusCodes.common.enumerated() {
            let count = total(at: RouteLayout.statusCodes + cell)
            if count > 0 { counts.append((Int(code), count)) }
        }
        guard !rareBlocks.isEmpty else { return counts }
        for cell in 0..<StatusCodes.all.count {
            let count = rareBlocks.reduce(UInt64(0)) { $0 &+ $1[cell] }
            if count > 0 { counts.append((StatusCodes.all.lowerBound + cell, count)) }
        }
        return counts
    }
}

extension ExpositionWriter {
    /// The responses of each route by their exact status code.
    mutating func writeStatusCodes(_ routes: [RouteSeries]) {
        family(
            "pinfold_http_responses", .counter,
            help: "Responses that clients were sent, by exact status code.")
        for route in routes {
            for (code, count) in route.statusCodes {
                begin(route.labels)
                label("code", number: UInt64(code))
                end(count)
            }
        }
    }
}
