import HTTPCore

/// An iterator over the lines of one field, in the order received.
///
/// It uses indices and raw values: a `for` loop over another module's collection, and `==` on its
/// enums, go through witness tables for every field.
struct FieldValueIterator {
    private let id: UInt8
    private var index = 0

    /// Creates an iterator over the lines of `id`.
    init(_ id: FieldID) { self.id = id.rawValue }

    /// The value of the next line; `nil` after the last.
    mutating func next(in fields: FieldSection) -> ByteRange? {
        let end = fields.endIndex
        while index < end {
            let field = fields[index]
            index &+= 1
            if field.id.rawValue == id { return field.value }
        }
        return nil
    }
}
