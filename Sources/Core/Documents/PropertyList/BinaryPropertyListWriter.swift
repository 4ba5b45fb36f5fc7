import HTTPCore

/// Writes a property list in binary form, `bplist00`. Equal strings, numbers and other scalars are
/// written once.
///
/// A number with a fraction or an exponent is a double-precision real, any other a signed or
/// unsigned 64-bit integer. A dictionary whose only member is `CF$UID`, an unsigned 32-bit integer,
/// is a UID. Null is ``DocumentError/Reason/unrepresentable(_:)``.
public struct BinaryPropertyListWriter: DocumentSink {
    private let limits: DocumentLimits
    private var objects: [BinaryPropertyListObject] = []
    /// The objects other than arrays and dictionaries, one after another.
    private var body: OutputBytes
    /// The references of closed arrays and dictionaries; for a dictionary the keys first.
    private var references: [UInt32] = []
    /// The references of open ones so far; for a dictionary key and value in turn.
    private var pending: [UInt32] = []
    /// The open containers: the number of each, and where in `pending` it begins.
    private var open: [(object: Int, start: Int)] = []
    private var singles: SingleObjects
    private let hash = SeededHash()

    /// - Parameters:
    ///   - limits: of these `depth` and `output` apply.
    ///   - capacity: the number of bytes of objects for which space is reserved initially.
    public init(limits: DocumentLimits = .standard, capacity: Int = 512) {
        self.limits = limits
        let capacity = min(capacity, limits.output)
        body = OutputBytes(capacity: capacity)
        singles = SingleObjects(capacity: capacity / 32)
        objects.reserveCapacity(capacity / 32)
        references.reserveCapacity(capacity / 8)
    }

    /// - Parameter isAdded: whether the current value has already been added to its array.
    private func error(
        _ reason: DocumentError.Reason, isAdded: Bool = false
    ) -> DocumentError {
        var path = WritingPath()
        for (level, container) in open.enumerated() {
            let isArray = objects[container.object].kind == .array
            let isInner = level == open.count - 1
            let end = isInner ? pending.count : open[level + 1].start
            let count = end - container.start
            path.begin(isArray: isArray)
            if isArray {
                path.setIndex(isInner && !isAdded ? count : count - 1)
            } else if count > 0 {
                path.setKey(string(of: pending[container.start + (count - 1) / 2 * 2]))
            }
        }
        return DocumentError(.plist, reason, path: path.description)
    }

    private func checkSize() throws(DocumentError) {
        let size = body.count + 2 * objects.count + references.count + pending.count
        guard size <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output), isAdded: true)
        }
    }

    // MARK: Single objects

    /// Makes what was appended to `body` an object, or reuses an equal one.
    private mutating func addSingle(
        from start: Int, hash: UInt64
    ) throws(DocumentError) {
        let number = UInt32(objects.count)
        let there = singles.number(from: start, of: body, hash: hash, else: number)
        if there != number {
            body.cut(to: start)
        } else {
            objects.append(.init(start: start, count: body.count - start, kind: .single))
        }
        pending.append(there)
        try checkSize()
    }

    public mutating func null() throws(DocumentError) { throw error(.unrepresentable("null")) }

    public mutating func boolean(_ value: Bool) throws(DocumentError) {
        let start = body.count
        body.append(value ? 0x09 : 0x08)
        try addSingle(from: start, hash: hash.value(of: value ? 1 : 0))
    }

    public mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        switch PropertyListNumber(text) {
        case .small(let value): try addInteger(value)
        case .integer(let digits):
            if let value = UInt64(digits) {
                try addInteger(value)
            } else {
                try addInteger(Int64(digits) ?? 0)
            }
        case .real: try addEightBytes(0x23, PropertyListNumber.double(text).bitPattern)
        case nil: throw error(.numberOutOfRange(String(decoding: text, as: UTF8.self)))
        }
    }

    private mutating func addInteger(_ value: Int64) throws(DocumentError) {
        guard value < 0 else { return try addInteger(UInt64(value)) }
        try addEightBytes(0x13, UInt64(bitPattern: value))
    }

    private mutating func addInteger(_ value: UInt64) throws(DocumentError) {
        let start = body.count
        body.write(atMost: 17) { $0.putInteger(value) }
        try addSingle(from: start, hash: hash.value(of: value))
    }

    private mutating func addEightBytes(
        _ marker: UInt8, _ value: UInt64
    ) throws(DocumentError) {
        let start = body.count
        body.write(atMost: 9) {
            $0.put(marker)
            $0.put(value, bytes: 8)
        }
        try addSingle(from: start, hash: hash.value(of: value))
    }

    public mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        let start = body.count
        if text.isASCII {
            body.write(atMost: text.count + 10) {
                $0.putMarker(0x50, count: text.count)
                $0.put(text)
            }
        } else {
            let units = String(decoding: text, as: UTF8.self).utf16
            let count = units.count
            body.write(atMost: 2 * count + 10) {
                $0.putMarker(0x60, count: count)
                for unit in units { $0.put(UInt64(unit), bytes: 2) }
            }
        }
        try addSingle(from: start, hash: hash.value(of: text))
    }

    public mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try string(text)
    }

    public mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        let start = body.count
        body.write(atMost: bytes.count + 10) {
            $0.putMarker(0x40, count: bytes.count)
            $0.put(bytes)
        }
        try addSingle(from: start, hash: hash.value(of: bytes))
    }

    public mutating func date(_ seconds: Double) throws(DocumentError) {
        guard seconds.isFinite else { throw error(.unrepresentable("an infinite date")) }
        try addEightBytes(0x33, (seconds - BinaryPropertyListTable.epoch).bitPattern)
    }

    // MARK: Containers

    private mutating func begin(_ kind: BinaryPropertyListObject.Kind) throws(DocumentError) {
        guard open.count < limits.depth else { throw error(.tooDeep(maximum: limits.depth)) }
        pending.append(UInt32(objects.count))
        open.append((objects.count, pending.count))
        objects.append(.init(start: 0, count: 0, kind: kind))
        try checkSize()
    }

    public mutating func beginArray() throws(DocumentError) { try begin(.array) }
    public mutating func beginDictionary() throws(DocumentError) { try begin(.dictionary) }

    public mutating func endArray() throws(DocumentError) {
        guard let (object, start) = open.popLast() else { return }
        objects[object] = .init(
            start: references.count, count: pending.count - start, kind: .array)
        references.append(contentsOf: pending[start...])
        pending.removeLast(pending.count - start)
    }

    public mutating func endDictionary() throws(DocumentError) {
        guard let (object, start) = open.popLast() else { return }
        defer { pending.removeLast(pending.count - start) }
        if let uid = uid(pending[start...]) {
            // The dictionary itself becomes a UID; its key and number stay, used by other objects
            // or by none.
            let place = body.count
            let width = uid < 1 << 8 ? 1 : uid < 1 << 16 ? 2 : 4
            body.write(atMost: 5) {
                $0.put(0x80 | UInt8(width - 1))
                $0.put(uid, bytes: width)
            }
            objects[object] = .init(start: place, count: body.count - place, kind: .single)
            return
        }
        objects[object] = .init(
            start: references.count, count: pending.count - start, kind: .dictionary)
        for index in stride(from: start, to: pending.count, by: 2) {
            references.append(pending[index])
        }
        for index in stride(from: start + 1, to: pending.count, by: 2) {
            references.append(pending[index])
        }
    }

    /// The value of a UID's dictionary; `nil` if it is not one.
    private func uid(_ members: ArraySlice<UInt32>) -> UInt64? {
        guard members.count == 2, let key = members.first, let value = members.last else {
            return nil
        }
        let number = bytes(of: Int(value))
        guard bytes(of: Int(key)).elementsEqual([0x56] + "CF$UID".utf8),
            let marker = number.first, (0x10...0x12).contains(marker)
        else { return nil }
        return number.dropFirst().reduce(0) { $0 << 8 | UInt64($1) }
    }

    private func bytes(of number: Int) -> [UInt8] {
        let object = objects[number]
        guard object.kind == .single else { return [] }
        return body.withBytes { Array($0[object.start..<object.start + object.count]) }
    }

    /// The text of a string object.
    private func string(of number: UInt32) -> String {
        let bytes = bytes(of: Int(number))
        guard let marker = bytes.first else { return "" }
        let sized = marker & 0x0F == 0x0F ? 2 + (1 << Int(bytes[1] & 0x0F)) : 1
        let text = bytes.dropFirst(sized)
        guard marker >> 4 == 6 else { return String(decoding: text, as: UTF8.self) }
        let units = stride(from: text.startIndex, to: text.endIndex - 1, by: 2)
            .map { UInt16(text[$0]) << 8 | UInt16(text[$0 + 1]) }
        return String(decoding: units, as: UTF16.self)
    }

    // MARK: The whole

    /// The property list.
    public mutating func finish() throws(DocumentError) -> [UInt8] {
        guard let top = pending.first, open.isEmpty else {
            throw error(.unrepresentable("no value"))
        }
        // Apple's reader requires fewer objects than references can distinguish.
        let width = objects.count < 1 << 8 ? 1 : objects.count < 1 << 16 ? 2 : 4
        let table = sizeOfObjects(referenceBytes: width)
        let offsetBytes = table < 1 << 8 ? 1 : table < 1 << 16 ? 2 : table < 1 << 32 ? 4 : 8
        let size = table + objects.count * offsetBytes + BinaryPropertyListTable.trailerBytes
        guard size <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output))
        }
        var output = OutputBytes(capacity: size)
        output.write(atMost: size) { output in
            writeObjects(to: &output, referenceBytes: width)
            writeOffsets(to: &output, offsetBytes: offsetBytes, referenceBytes: width)
            output.put(0, times: 6)
            output.put(UInt8(offsetBytes))
            output.put(UInt8(width))
            output.put(UInt64(objects.count), bytes: 8)
            output.put(UInt64(top), bytes: 8)
            output.put(UInt64(table), bytes: 8)
        }
        return output.take()
    }

    /// The number of bytes before the table of offsets.
    private func sizeOfObjects(referenceBytes width: Int) -> Int {
        objects.reduce(BinaryPropertyListTable.headerBytes) { $0 + $1.size(referenceBytes: width) }
    }

    private func writeObjects(to output: inout ByteCursor, referenceBytes width: Int) {
        output.put("bplist00")
        body.withBytes { body in
            for (number, object) in objects.enumerated() {
                if number % YieldPoint.values == 0 { limits.yieldPoint?.run() }
                let range = object.start..<object.start + object.count
                guard object.kind != .single else {
                    output.put(UnsafeRawBufferPointer(rebasing: body[range]))
                    continue
                }
                output.putMarker(object.kind.marker, count: object.elements)
                for reference in references[range] {
                    output.put(UInt64(reference), bytes: width)
                }
            }
        }
    }

    private func writeOffsets(
        to output: inout ByteCursor, offsetBytes: Int, referenceBytes: Int
    ) {
        var offset = BinaryPropertyListTable.headerBytes
        for object in objects {
            output.put(UInt64(offset), bytes: offsetBytes)
            offset += object.size(referenceBytes: referenceBytes)
        }
    }
}
