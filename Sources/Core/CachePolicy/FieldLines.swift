import HTTPCore

/// Walks the lines of one field, in the order received.
///
/// By index, and by number of the name: a `for` loop over another module's collection, and `==` of
/// its enums, go through witness tables for every field.
struct FieldLines {
    private let id: UInt8
    private var index = 0

    /// A walk over the lines of `id`.
    init(_ id: FieldID) { self.id = id.rawValue }

    /// The value of the next line; nil after the last.
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
