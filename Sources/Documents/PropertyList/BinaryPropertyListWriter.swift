import Notation

/// Writes a property list in its binary form, `bplist00`. Equal strings, numbers and the like are
/// written once.
///
/// A number with a fraction or an exponent is a real of double precision, any other an integer of
/// 64 bits with sign or without. A dictionary with the one member `CF$UID`, an integer of 32 bits
/// without sign, is a UID. Null is ``DocumentError/Reason/unrepresentable(_:)``.
public struct BinaryPropertyListWriter: DocumentSink {
    private struct Object {
        /// Where it begins in `body`; of an array or dictionary, its references in `references`.
        var start: Int
        /// Bytes, or references.
        var count: Int
        var kind: Kind
    }

    private enum Kind: UInt8 {
        case single = 0
        case array = 0xA0
        case dictionary = 0xD0
    }

    private let limits: DocumentLimits
    private var path = WritingPath()
    private var objects: [Object] = []
    /// The objects that are no arrays and dictionaries, one behind the other.
    private var body: [UInt8] = []
    /// What closed arrays and dictionaries name; of a dictionary the keys first.
    private var references: [UInt32] = []
    /// What open ones name so far; of a dictionary key and value in turn.
    private var pending: [UInt32] = []
    /// The open ones: the number of each, and where in `pending` it begins.
    private var open: [(object: Int, start: Int)] = []
    /// Numbers of single objects by their hash: 1 more than the number, or 0.
    private var table = [UInt32](repeating: 0, count: 64)
    private var singles = 0

    public init(limits: DocumentLimits = .standard) { self.limits = limits }

    private func error(_ reason: DocumentError.Reason) -> DocumentError {
        DocumentError(.plist, reason, path: path.description)
    }

    private func checkSize() throws(DocumentError) {
        let size = body.count + 2 * objects.count + references.count + pending.count
        guard size <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output))
        }
    }

    // MARK: Single objects

    /// Takes what was added to `body` as an object, or the equal one that is there already.
    private mutating func addSingle(from start: Int) throws(DocumentError) {
        if 2 * singles >= table.count { rehash() }
        let slot = slot(of: start..<body.count)
        if table[slot] > 0 {
            body.removeLast(body.count - start)
        } else {
            objects.append(Object(start: start, count: body.count - start, kind: .single))
            table[slot] = UInt32(objects.count)
            singles += 1
        }
        pending.append(table[slot] - 1)
        try checkSize()
    }

    private func slot(of range: Range<Int>) -> Int {
        body.withUnsafeBytes { body in
            let bytes = UnsafeRawBufferPointer(rebasing: body[range])
            var hasher = Hasher()
            hasher.combine(bytes: bytes)
            var slot = hasher.finalize() & (table.count - 1)
            while table[slot] > 0 {
                let other = objects[Int(table[slot]) - 1]
                let there = UnsafeRawBufferPointer(
                    rebasing: body[other.start..<other.start + other.count])
                if there.hasSameBytes(as: bytes) { break }
                slot = (slot + 1) & (table.count - 1)
            }
            return slot
        }
    }

    private mutating func rehash() {
        table = [UInt32](repeating: 0, count: 2 * table.count)
        for (number, object) in objects.enumerated() where object.kind == .single {
            table[slot(of: object.start..<object.start + object.count)] = UInt32(number + 1)
        }
    }

    private mutating func append(_ value: UInt64, bytes count: Int) {
        body.append(value, bytes: count)
    }

    public mutating func null() throws(DocumentError) {
        path.next()
        throw error(.unrepresentable("null"))
    }

    public mutating func boolean(_ value: Bool) throws(DocumentError) {
        path.next()
        let start = body.count
        body.append(value ? 0x09 : 0x08)
        try addSingle(from: start)
    }

    public mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        path.next()
        let start = body.count
        switch PropertyListNumber(text) {
        case .small: body.appendInteger(text.reduce(UInt64(0)) { $0 * 10 + UInt64($1 & 0x0F) })
        case .integer(let digits):
            if let value = UInt64(digits) {
                body.appendInteger(value)
            } else {
                body.append(0x13)
                append(UInt64(bitPattern: Int64(digits) ?? 0), bytes: 8)
            }
        case .real(let value):
            body.append(0x23)
            append(value.bitPattern, bytes: 8)
        case nil: throw error(.numberOutOfRange(String(decoding: text, as: UTF8.self)))
        }
        try addSingle(from: start)
    }

    public mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        path.next()
        try addString(text)
    }

    public mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        path.setKey(text)
        try addString(text)
    }

    private mutating func addString(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        let start = body.count
        if text.allSatisfy({ $0 < 0x80 }) {
            body.appendMarker(0x50, count: text.count)
            body.append(contentsOf: text)
        } else {
            let units = String(decoding: text, as: UTF8.self).utf16
            body.appendMarker(0x60, count: units.count)
            for unit in units { append(UInt64(unit), bytes: 2) }
        }
        try addSingle(from: start)
    }

    public mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        path.next()
        let start = body.count
        body.appendMarker(0x40, count: bytes.count)
        body.append(contentsOf: bytes)
        try addSingle(from: start)
    }

    public mutating func date(_ seconds: Double) throws(DocumentError) {
        path.next()
        guard seconds.isFinite else { throw error(.unrepresentable("a date without end")) }
        let start = body.count
        body.append(0x33)
        append((seconds - BinaryPropertyListTable.epoch).bitPattern, bytes: 8)
        try addSingle(from: start)
    }

    // MARK: Containers

    private mutating func begin(_ kind: Kind) throws(DocumentError) {
        path.next()
        guard open.count < limits.depth else { throw error(.tooDeep(maximum: limits.depth)) }
        pending.append(UInt32(objects.count))
        open.append((objects.count, pending.count))
        objects.append(Object(start: 0, count: 0, kind: kind))
        path.begin(isArray: kind == .array)
        try checkSize()
    }

    public mutating func beginArray() throws(DocumentError) { try begin(.array) }
    public mutating func beginDictionary() throws(DocumentError) { try begin(.dictionary) }

    public mutating func endArray() throws(DocumentError) {
        guard let (object, start) = open.popLast() else { return }
        path.end()
        objects[object].start = references.count
        objects[object].count = pending.count - start
        references.append(contentsOf: pending[start...])
        pending.removeLast(pending.count - start)
    }

    public mutating func endDictionary() throws(DocumentError) {
        guard let (object, start) = open.popLast() else { return }
        path.end()
        defer { pending.removeLast(pending.count - start) }
        if let uid = uid(pending[start...]) {
            // The dictionary itself becomes a UID; its key and number stay, named by nobody or by
            // others.
            let place = body.count
            let width = uid < 1 << 8 ? 1 : uid < 1 << 16 ? 2 : 4
            body.append(0x80 | UInt8(width - 1))
            append(uid, bytes: width)
            objects[object] = Object(start: place, count: body.count - place, kind: .single)
            singles += 1
            return
        }
        objects[object].start = references.count
        objects[object].count = pending.count - start
        for index in stride(from: start, to: pending.count, by: 2) {
            references.append(pending[index])
        }
        for index in stride(from: start + 1, to: pending.count, by: 2) {
            references.append(pending[index])
        }
    }

    /// What a UID's dictionary says; nil: it is none.
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

    private func bytes(of number: Int) -> ArraySlice<UInt8> {
        let object = objects[number]
        return object.kind == .single ? body[object.start..<object.start + object.count] : []
    }

    // MARK: The whole

    /// The property list.
    public mutating func finish() throws(DocumentError) -> [UInt8] {
        guard let top = pending.first, open.isEmpty else {
            throw error(.unrepresentable("no value"))
        }
        // Apple's reader asks that there be fewer objects than references can tell apart.
        let width = objects.count < 1 << 8 ? 1 : objects.count < 1 << 16 ? 2 : 4
        let size = body.count + references.count * width + 9 * objects.count
        var output = Array("bplist00".utf8)
        output.reserveCapacity(min(size, limits.output) + 64)
        var offsets: [Int] = []
        offsets.reserveCapacity(objects.count)
        for object in objects {
            offsets.append(output.count)
            guard object.kind != .single else {
                output.append(contentsOf: body[object.start..<object.start + object.count])
                continue
            }
            let count = object.kind == .dictionary ? object.count / 2 : object.count
            output.appendMarker(object.kind.rawValue, count: count)
            for reference in references[object.start..<object.start + object.count] {
                output.append(UInt64(reference), bytes: width)
            }
        }
        output.appendTable(offsets, referenceBytes: width, top: top)
        guard output.count <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output))
        }
        return output
    }
}

extension [UInt8] {
    /// Adds a number, most significant byte first.
    fileprivate mutating func append(_ value: UInt64, bytes count: Int) {
        for index in (0..<count).reversed() {
            append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(index))))
        }
    }

    fileprivate mutating func appendInteger(_ value: UInt64) {
        switch value {
        case 0..<1 << 8:
            append(0x10)
            append(value, bytes: 1)
        case 0..<1 << 16:
            append(0x11)
            append(value, bytes: 2)
        case 0..<1 << 32:
            append(0x12)
            append(value, bytes: 4)
        case 0..<1 << 63:
            append(0x13)
            append(value, bytes: 8)
        default:
            // With 8 bytes there would be a sign.
            append(0x14)
            append(0, bytes: 8)
            append(value, bytes: 8)
        }
    }

    fileprivate mutating func appendMarker(_ kind: UInt8, count: Int) {
        if count < 15 {
            append(kind | UInt8(count))
        } else {
            append(kind | 0x0F)
            appendInteger(UInt64(count))
        }
    }

    fileprivate mutating func appendTable(_ offsets: [Int], referenceBytes: Int, top: UInt32) {
        let start = count
        let width = start < 1 << 8 ? 1 : start < 1 << 16 ? 2 : start < 1 << 32 ? 4 : 8
        for offset in offsets { append(UInt64(offset), bytes: width) }
        append(0, bytes: 6)
        append(UInt64(width), bytes: 1)
        append(UInt64(referenceBytes), bytes: 1)
        append(UInt64(offsets.count), bytes: 8)
        append(UInt64(top), bytes: 8)
        append(UInt64(start), bytes: 8)
    }
}
