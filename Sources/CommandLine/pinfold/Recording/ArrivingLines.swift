/// Bytes that arrive in parts, as lines.
struct ArrivingLines: Sendable {
    /// The most bytes of a line.
    static let limit = 64 << 20

    private var rest: [UInt8] = []

    /// The lines that are complete with these bytes, without their ends and without empty ones;
    /// `nil` if one is too long.
    mutating func add(_ bytes: [UInt8]) -> [[UInt8]]? {
        guard let last = bytes.lastIndex(of: UInt8(ascii: "\n")) else {
            rest += bytes
            return rest.count > Self.limit ? nil : []
        }
        let complete = rest + bytes[..<last]
        rest = Array(bytes[(last + 1)...])
        return complete.split(separator: UInt8(ascii: "\n")).map(Array.init)
    }
}
