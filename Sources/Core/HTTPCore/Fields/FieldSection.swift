/// One field line of a head, as offsets over the head's bytes.
public struct Field: Sendable, Equatable {
    /// The name, if the gateway knows it, otherwise `other` or `disguised`.
    public var id: FieldID
    /// Whether a Connection field of the same head nominates this field as hop-by-hop, and is
    /// allowed to (see ``ConnectionOptions``).
    public var isNominated: Bool
    /// The name's bytes. The line begins at its first byte.
    public var name: ByteRange
    /// The value without surrounding whitespace (RFC 9112 §5.1). May be empty.
    public var value: ByteRange

    /// A field with these parts.
    @inlinable @inline(__always)
    public init(id: FieldID, name: ByteRange, value: ByteRange, isNominated: Bool = false) {
        self.id = id
        self.isNominated = isNominated
        self.name = name
        self.value = value
    }
}

/// The fields of one head in order, with a bitmask of the names that occur.
///
/// ``removeAll()`` keeps the storage, so that a reused section does not allocate.
public struct FieldSection: Sendable, RandomAccessCollection {
    @usableFromInline var storage: ContiguousArray<Field> = []
    /// The known names that occur, including `other` if an unknown name occurs.
    public private(set) var present: FieldIDSet = []
    /// The known names that occur on more than one line.
    public private(set) var repeated: FieldIDSet = []
    /// The unknown names that occur.
    public internal(set) var unknownNames = FieldNameSketch()
    /// Whether some field has ``Field/isNominated``.
    public internal(set) var hasNominated = false
    /// Whether some line has yet to be repaired (``LineRepair``).
    public internal(set) var isIrregular = false
    /// The offset of the empty line that ends the section: one past the last field line.
    public internal(set) var end: UInt32 = 0

    /// An empty section.
    public init() {}

    @inlinable public var startIndex: Int { 0 }
    @inlinable public var endIndex: Int { storage.count }
    /// The field at `index`, in the order received.
    @inlinable public subscript(index: Int) -> Field { storage[index] }

    /// Calls `body` with the fields in memory: the fastest way to iterate over them.
    @inlinable
    public func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<Field>) throws -> Result
    ) rethrows -> Result? {
        try storage.withContiguousStorageIfAvailable(body)
    }

    /// Whether a field with this name occurs: tests one bit.
    @inlinable @inline(__always)
    public func contains(_ id: FieldID) -> Bool { present.contains(id) }

    /// The first field with this name.
    public func first(_ id: FieldID) -> Field? {
        guard present.contains(id) else { return nil }
        return storage.withUnsafeBufferPointer { buffer in
            for index in 0..<buffer.count where buffer[index].id == id { return buffer[index] }
            return nil
        }
    }

    /// The field with this name if it occurs exactly once; otherwise `nil`.
    public func only(_ id: FieldID) -> Field? {
        repeated.contains(id) ? nil : first(id)
    }

    /// The number of fields with this name.
    public func count(of id: FieldID) -> Int {
        guard present.contains(id) else { return 0 }
        return storage.count { $0.id == id }
    }

    /// Has a name count as one that occurs, although no line has it: the message is treated as if
    /// it had the field.
    public mutating func countAsPresent(_ id: FieldID) { present.formUnion(FieldIDSet(id)) }

    /// Has a name count as one that does not occur: none of its lines is forwarded.
    mutating func countAsAbsent(_ id: FieldID) {
        present.remove(id)
        repeated.remove(id)
    }

    /// Empties the section and keeps its storage.
    public mutating func removeAll() {
        storage.removeAll(keepingCapacity: true)
        present = []
        repeated = []
        unknownNames = FieldNameSketch()
        hasNominated = false
        isIrregular = false
        end = 0
    }

    /// Appends a field.
    @inline(__always)
    public mutating func append(_ field: Field) {
        let id = FieldIDSet(field.id)
        repeated.formUnion(present.intersection(id))
        present.formUnion(id)
        storage.append(field)
    }

    /// Sets the value of the field at `index`.
    mutating func setValue(_ value: ByteRange, at index: Int) { storage[index].value = value }

    /// Removes the field at `index`; other fields have the same name. Its line must already have
    /// been overwritten with white space that ends the previous line.
    mutating func remove(at index: Int) {
        let id = storage.remove(at: index).id
        if count(of: id) == 1 { repeated.remove(id) }
    }

    /// Marks the field at `index` as nominated by a Connection field.
    mutating func nominate(_ index: Int) {
        storage[index].isNominated = true
        hasNominated = true
    }
}
