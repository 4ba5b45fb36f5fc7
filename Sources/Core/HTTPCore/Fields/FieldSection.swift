/// One field line of a head, as offsets over the head's bytes.
package struct Field: Sendable, Equatable {
    /// The name among those the gateway knows, or `other`.
    package var id: FieldID
    /// Whether a Connection field of the same head names this field as hop-by-hop, and may
    /// (see ``ConnectionOptions``).
    package var isNominated: Bool
    /// The name's bytes. The line begins at its first byte.
    package var name: ByteRange
    /// The value without the whitespace around it (RFC 9112 §5.1). May be empty.
    package var value: ByteRange

    /// A field with these parts.
    @inlinable @inline(__always)
    package init(id: FieldID, name: ByteRange, value: ByteRange, isNominated: Bool = false) {
        self.id = id
        self.isNominated = isNominated
        self.name = name
        self.value = value
    }
}

/// The fields of one head in their order, with a bitmask of the names that occur.
///
/// Storage survives ``removeAll()``, so a reused section does not allocate.
package struct FieldSection: Sendable, RandomAccessCollection {
    @usableFromInline var storage: ContiguousArray<Field> = []
    /// The known names that occur. `other` is in it when an unknown name does.
    package private(set) var present: FieldIDSet = []
    /// The known names that occur on more than one line.
    package private(set) var repeated: FieldIDSet = []
    /// The unknown names that occur.
    package internal(set) var unknownNames = FieldNameSketch()
    /// Whether some field has ``Field/isNominated``.
    package internal(set) var hasNominated = false
    /// Whether some line has yet to be mended (``LineRepair``).
    package internal(set) var isIrregular = false
    /// Offset of the empty line that ends the section: one past the last field line.
    package internal(set) var end: UInt32 = 0

    /// An empty section.
    package init() {}

    @inlinable package var startIndex: Int { 0 }
    @inlinable package var endIndex: Int { storage.count }
    /// The field at `index`, in the order received.
    @inlinable package subscript(index: Int) -> Field { storage[index] }

    /// Runs `body` over the fields in memory: the fastest way through them.
    @inlinable
    package func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<Field>) throws -> Result
    ) rethrows -> Result? {
        try storage.withContiguousStorageIfAvailable(body)
    }

    /// Whether a field of that name occurs: one test of a bit.
    @inlinable @inline(__always)
    package func contains(_ id: FieldID) -> Bool { present.contains(id) }

    /// The first field of that name.
    package func first(_ id: FieldID) -> Field? {
        guard present.contains(id) else { return nil }
        return storage.withUnsafeBufferPointer { buffer in
            for index in 0..<buffer.count where buffer[index].id == id { return buffer[index] }
            return nil
        }
    }

    /// The field of that name when there is exactly one; nil when there is none or several.
    package func only(_ id: FieldID) -> Field? {
        repeated.contains(id) ? nil : first(id)
    }

    /// How many fields of that name there are.
    package func count(of id: FieldID) -> Int {
        guard present.contains(id) else { return 0 }
        return storage.count { $0.id == id }
    }

    /// Empties the section and keeps its storage.
    package mutating func removeAll() {
        storage.removeAll(keepingCapacity: true)
        present = []
        repeated = []
        unknownNames = FieldNameSketch()
        hasNominated = false
        isIrregular = false
        end = 0
    }

    /// Adds a field at the end.
    @inline(__always)
    package mutating func append(_ field: Field) {
        let id = FieldIDSet(field.id)
        repeated.formUnion(present.intersection(id))
        present.formUnion(id)
        storage.append(field)
    }

    /// Gives the field at `index` another value.
    mutating func setValue(_ value: ByteRange, at index: Int) { storage[index].value = value }

    /// Removes the field at `index`, of whose name there are others. Its line must be white space
    /// by now, at the end of the line before.
    mutating func remove(at index: Int) {
        let id = storage.remove(at: index).id
        if count(of: id) == 1 { repeated.remove(id) }
    }

    /// Marks the field at `index` as named by a Connection field.
    mutating func nominate(_ index: Int) {
        storage[index].isNominated = true
        hasNominated = true
    }
}
