/// Reads the binary form, `bplist00`: objects that refer to each other by number, a table of their
/// offsets, and a trailer of 32 bytes with all sizes (CFBinaryPList.c).
///
/// Objects may be referred to repeatedly: each time counts as a value, and the bytes of its text
/// count again, so that the work is limited by `values` and `output` and not by what the list
/// claims. Nothing is allocated in proportion to a size that is merely claimed.
struct BinaryPropertyListReader {
    /// An array or dictionary that is open.
    private struct Open {
        /// The number of the object.
        var object: Int
        /// Where its references begin.
        var start: Int
        /// The number of its values.
        var count: Int
        /// The number of values that have been read.
        var next = 0
        var isDictionary: Bool
    }

    let bytes: UnsafeRawBufferPointer
    private let limits: DocumentLimits
    private let table: BinaryPropertyListTable
    /// The innermost open container, and those around it.
    private var inner: Open?
    private var outer: [Open] = []
    private var keys = KeySets()
    private var values = 0
    /// The total size of texts and data in bytes.
    private var content = 0
    private var scratch = OutputBytes(capacity: 0)

    init(_ bytes: UnsafeRawBufferPointer, limits: DocumentLimits) throws(DocumentError) {
        self.bytes = bytes
        self.limits = limits
        table = try BinaryPropertyListTable(bytes)
    }

    func error(_ problem: String, at offset: Int) -> DocumentError {
        DocumentError(.plist, .malformed(problem), at: DocumentLocation(offset: offset))
    }

    mutating func read(into sink: inout some DocumentSink) throws(DocumentError) {
        try readObject(table.top, into: &sink)
        while let container = inner {
            guard container.next < container.count else {
                inner = outer.popLast()
                if container.isDictionary {
                    keys.end()
                    try sink.endDictionary()
                } else {
                    try sink.endArray()
                }
                continue
            }
            inner?.next = container.next + 1
            var position = container.next
            if container.isDictionary {
                try readKey(reference(container.start, position), into: &sink)
                position += container.count
            }
            try readObject(reference(container.start, position), into: &sink)
        }
    }

    /// The object number at a position in the references, which are known to exist.
    private func reference(_ start: Int, _ position: Int) -> Int {
        bytes.number(at: start + position * table.referenceBytes, bytes: table.referenceBytes)
            ?? Int.max
    }

    private mutating func readKey(
        _ object: Int, into sink: inout some DocumentSink
    ) throws(DocumentError) {
        let offset = try table.offset(of: object, bytes)
        guard bytes[offset] >> 4 == 5 || bytes[offset] >> 4 == 6 else {
            throw error("a key is not a string", at: offset)
        }
        let text = try text(at: offset)
        let isNew: Bool
        switch text {
        case .there(let text):
            isNew = keys.insert(text)
            if isNew { try sink.key(text) }
        case .scratch:
            isNew = keys.insert(scratch)
            if isNew {
                try scratch.withText { text throws(DocumentError) in try sink.key(text) }
            }
        }
        guard isNew else {
            let key = string(text)
            throw DocumentError(.plist, .duplicateKey(key), at: DocumentLocation(offset: offset))
        }
    }

    private mutating func readObject(
        _ object: Int, into sink: inout some DocumentSink
    ) throws(DocumentError) {
        let offset = try table.offset(of: object, bytes)
        values += 1
        guard values <= limits.values else {
            throw DocumentError(
                .plist, .tooManyValues(maximum: limits.values), at: DocumentLocation(offset: offset)
            )
        }
        if values % YieldPoint.values == 0 { limits.yieldPoint?.run() }
        let marker = bytes[offset]
        switch marker >> 4 {
        case 0x0: try readSingle(marker, at: offset, into: &sink)
        case 0x1: try readInteger(at: offset, into: &sink)
        case 0x2: try readReal(at: offset, into: &sink)
        case 0x3: try readDate(at: offset, into: &sink)
        case 0x4: try sink.data(try bytesOfContent(at: offset, width: 1))
        case 0x5, 0x6:
            switch try text(at: offset) {
            case .there(let text): try sink.string(text)
            case .scratch:
                try scratch.withText { text throws(DocumentError) in try sink.string(text) }
            }
        case 0x8: try readUID(at: offset, into: &sink)
        case 0xA, 0xD:
            let isDictionary = marker >> 4 == 0xD
            try begin(object, at: offset, isDictionary: isDictionary)
            if isDictionary {
                keys.begin()
                try sink.beginDictionary()
            } else {
                try sink.beginArray()
            }
        default: throw error("an object's type is unknown", at: offset)
        }
    }

    private func readSingle(
        _ marker: UInt8, at offset: Int, into sink: inout some DocumentSink
    ) throws(DocumentError) {
        switch marker {
        case 0x00: try sink.null()
        case 0x08: try sink.boolean(false)
        case 0x09: try sink.boolean(true)
        default: throw error("an object's type is unknown", at: offset)
        }
    }

    private mutating func begin(
        _ object: Int, at offset: Int, isDictionary: Bool
    ) throws(DocumentError) {
        guard outer.count + (inner == nil ? 0 : 1) < limits.depth else {
            if inner?.object == object || outer.contains(where: { $0.object == object }) {
                throw error("an array or dictionary contains itself", at: offset)
            }
            throw DocumentError(
                .plist, .tooDeep(maximum: limits.depth), at: DocumentLocation(offset: offset))
        }
        let (count, start) = try size(at: offset)
        let each = table.referenceBytes * (isDictionary ? 2 : 1)
        guard start <= table.start, count <= (table.start - start) / each else {
            throw error("an array or dictionary is truncated", at: offset)
        }
        if let inner { outer.append(inner) }
        inner = Open(object: object, start: start, count: count, isDictionary: isDictionary)
    }

    // MARK: Numbers

    private func readInteger(
        at offset: Int, into sink: inout some DocumentSink
    ) throws(DocumentError) {
        let width = 1 << Int(bytes[offset] & 0x0F)
        guard width <= 16, offset + 1 + width <= table.start else {
            throw error("an integer is damaged", at: offset)
        }
        let high = width == 16 ? bytes.word(at: offset + 1, bytes: 8) : 0
        let low = bytes.word(at: offset + 1 + width - min(width, 8), bytes: min(width, 8))
        // Numbers are signed only if they have 8 bytes or more.
        let isNegative = width == 16 ? high == .max && low >> 63 == 1 : width == 8 && low >> 63 == 1
        guard high == 0 || isNegative else {
            throw DocumentError(
                .plist, .numberOutOfRange("of 128 bits"), at: DocumentLocation(offset: offset))
        }
        let digits = DecimalDigits(isNegative ? 0 &- low : low, isNegative: isNegative)
        try digits.withBytes { text throws(DocumentError) in try sink.number(text) }
    }

    private func double(at offset: Int) throws(DocumentError) -> Double {
        let width = 1 << Int(bytes[offset] & 0x0F)
        guard width == 4 || width == 8, offset + 1 + width <= table.start else {
            throw error("a real number or date is damaged", at: offset)
        }
        let bits = bytes.word(at: offset + 1, bytes: width)
        let value =
            width == 4
            ? Double(Float(bitPattern: UInt32(bits))) : Double(bitPattern: bits)
        guard value.isFinite else {
            throw DocumentError(
                .plist, .numberOutOfRange(value.description), at: DocumentLocation(offset: offset))
        }
        return value
    }

    private func readReal(
        at offset: Int, into sink: inout some DocumentSink
    ) throws(DocumentError) {
        try double(at: offset).description.withBytes { text throws(DocumentError) in
            try sink.number(text)
        }
    }

    private func readDate(
        at offset: Int, into sink: inout some DocumentSink
    ) throws(DocumentError) {
        guard bytes[offset] == 0x33 else {
            throw error("a real number or date is damaged", at: offset)
        }
        try sink.date(try double(at: offset) + BinaryPropertyListTable.epoch)
    }

    private mutating func readUID(
        at offset: Int, into sink: inout some DocumentSink
    ) throws(DocumentError) {
        let width = Int(bytes[offset] & 0x0F) + 1
        guard width <= 8, offset + 1 + width <= table.start else {
            throw error("a UID is damaged", at: offset)
        }
        let text = String(bytes.word(at: offset + 1, bytes: width))
        try sink.beginDictionary()
        try "CF$UID".withBytes { key throws(DocumentError) in try sink.key(key) }
        try text.withBytes { text throws(DocumentError) in try sink.number(text) }
        try sink.endDictionary()
    }

    // MARK: Texts

    /// How many elements the object at an offset has, and where they begin.
    private func size(at offset: Int) throws(DocumentError) -> (count: Int, start: Int) {
        let low = Int(bytes[offset] & 0x0F)
        if low < 0xF { return (low, offset + 1) }
        guard offset + 1 < table.start, bytes[offset + 1] >> 4 == 1 else {
            throw error("a size is damaged", at: offset)
        }
        let width = 1 << Int(bytes[offset + 1] & 0x0F)
        guard width <= 8, offset + 2 + width <= table.start,
            let count = bytes.number(at: offset + 2, bytes: width)
        else { throw error("a size is damaged", at: offset) }
        return (count, offset + 2 + width)
    }

    /// The content of an object whose elements have this many bytes.
    private mutating func bytesOfContent(
        at offset: Int, width: Int
    ) throws(DocumentError) -> UnsafeRawBufferPointer {
        let (count, start) = try size(at: offset)
        guard count <= (table.start - start) / width else {
            throw error("a string or data is truncated", at: offset)
        }
        content += count * width
        guard content <= limits.output else {
            throw DocumentError(
                .plist, .outputTooLarge(maximum: limits.output),
                at: DocumentLocation(offset: offset))
        }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<start + count * width])
    }

    private enum Text {
        case there(UnsafeRawBufferPointer)
        /// In `scratch`.
        case scratch
    }

    private func string(_ text: Text) -> String {
        switch text {
        case .there(let text): String(decoding: text, as: UTF8.self)
        case .scratch: scratch.text(0..<scratch.count)
        }
    }

    /// A string in UTF-8.
    private mutating func text(at offset: Int) throws(DocumentError) -> Text {
        guard bytes[offset] >> 4 == 6 else {
            let text = try bytesOfContent(at: offset, width: 1)
            guard text.isASCII else {
                throw error("an ASCII string has a byte that is not ASCII", at: offset)
            }
            return .there(text)
        }
        let wide = try bytesOfContent(at: offset, width: 2)
        scratch.cut(to: 0)
        guard scratch.append(utf16: wide) else { throw error("a string is not UTF-16", at: offset) }
        return .scratch
    }
}
