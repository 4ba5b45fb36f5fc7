/// Sizes and durations as text: a whole number and a unit.
package enum Quantity {
    /// The units of sizes, in bytes: decimal (KB) and binary (KiB).
    static let byteUnits: [(name: String, bytes: Int)] = [
        ("", 1), ("B", 1),
        ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40),
    ]
    /// The units of durations, in milliseconds.
    static let durationUnits: [(name: String, milliseconds: Int)] = [
        ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    /// Parses a size into bytes. The result is `nil` if it is malformed or too large for an `Int`.
    package static func bytes(_ text: String) -> Int? {
        parse(text, units: byteUnits.map { ($0.name, $0.bytes) })
    }

    /// Parses a duration into milliseconds. The result is `nil` if it is malformed or too large.
    package static func milliseconds(_ text: String) -> Int64? {
        parse(text, units: durationUnits.map { ($0.name, $0.milliseconds) }).map(Int64.init)
    }

    /// The shortest exact text for a number of bytes: `64MiB`, `1000`.
    static func text(bytes: Int) -> String {
        guard bytes != 0 else { return "0" }
        for (name, size) in byteUnits.reversed() where size % 1_024 == 0 && bytes % size == 0 {
            return "\(bytes / size)\(name)"
        }
        return "\(bytes)"
    }

    /// The shortest exact text for a number of milliseconds: `5m`, `170ms`, `0s`.
    static func text(milliseconds: Int64) -> String {
        guard milliseconds != 0 else { return "0s" }
        for (name, size) in durationUnits.reversed() where milliseconds % Int64(size) == 0 {
            return "\(milliseconds / Int64(size))\(name)"
        }
        return "\(milliseconds)ms"
    }

    /// The size that was probably meant by a size in another program's units, or `nil` if that is
    /// unclear. For example, `64M` is `64MiB`, as in nginx and Docker.
    static func meantBytes(_ text: String) -> String? {
        meant(text) { unit in
            if ["b", "byte", "bytes"].contains(unit) { return "B" }
            guard let prefix = unit.first, "kmgt".contains(prefix) else { return nil }
            switch unit.dropFirst() {
            case "", "i", "ib": return "\(prefix.uppercased())iB"
            case "b": return "\(prefix.uppercased())B"
            default: return nil
            }
        }
    }

    /// Like ``meantBytes(_:)``, for a duration: `5min` is `5m`, and a bare number means seconds.
    static func meantDuration(_ text: String) -> String? {
        meant(text) { unit in
            switch unit {
            case "ms", "msec", "msecs", "millisecond", "milliseconds": "ms"
            case "", "s", "sec", "secs", "second", "seconds": "s"
            case "m", "min", "mins", "minute", "minutes": "m"
            case "h", "hr", "hrs", "hour", "hours": "h"
            case "d", "day", "days": "d"
            default: nil
            }
        }
    }

    /// A whole number with the unit that was probably meant by the text after it.
    private static func meant(_ text: String, _ unit: (String) -> String?) -> String? {
        let digits = text.prefix { ("0"..."9").contains($0) }
        let rest = text.dropFirst(digits.count).drop { $0 == " " }
        // Longer numbers would be out of range with any unit.
        guard (1...15).contains(digits.count), rest.utf8.count <= 12 else { return nil }
        return unit(rest.lowercased()).map { digits + $0 }
    }

    /// Parses an unsigned whole number directly followed by one of the units.
    private static func parse(_ text: String, units: [(String, Int)]) -> Int? {
        let digits = text.utf8.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        let unit = String(text.utf8.dropFirst(digits.count)) ?? "?"
        guard !digits.isEmpty, let number = Int(String(digits) ?? ""),
            let factor = units.first(where: { $0.0 == unit })?.1
        else { return nil }
        let (product, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow ? nil : product
    }
}
