/// Where a list of entries goes on: the rows of the database in the order of their ids, then what
/// else is in memory. Entries that come while a list is made may be missing from it.
public struct EntryCursor: Sendable, Equatable, CustomStringConvertible {
    enum Position: Sendable, Equatable {
        /// After this row.
        case disk(Int64)
        /// At this place of memory. Rows up to this one were listed.
        case memory(part: Int, slot: Int, rows: Int64)
    }

    let position: Position
    /// The database, and the process, that it belongs to (`DiskTier.generation`).
    let generation: UInt64

    init(_ position: Position, in generation: UInt64) {
        self.position = position
        self.generation = generation
    }

    /// Reads what `description` has written; `nil` if it is none.
    public init?(_ text: String) {
        var parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        guard let last = parts.popLast(), last.first != "+",
            let generation = UInt64(last, radix: 16)
        else { return nil }
        self.generation = generation
        switch (text.first, parts.count) {
        case ("d", 1):
            guard let id = Int64(parts[0]), id >= 0 else { return nil }
            position = .disk(id)
        case ("m", 3):
            guard let part = Int(parts[0]), let slot = Int(parts[1]), let rows = Int64(parts[2]),
                part >= 0, slot >= 0, rows >= 0
            else { return nil }
            position = .memory(part: part, slot: slot, rows: rows)
        default: return nil
        }
    }

    public var description: String {
        let place =
            switch position {
            case .disk(let id): "d\(id)"
            case .memory(let part, let slot, let rows): "m\(part).\(slot).\(rows)"
            }
        return place + "." + String(generation, radix: 16)
    }
}
