/// A value of a property list.
enum PropertyList {
    case dictionary([(key: String, value: PropertyList)])
    case array([PropertyList])
    case string(String)
    case boolean(Bool)
    case integer(Int64)
    /// Seconds since 1970.
    case date(Int64)
    /// Data, a real number, or a reference of an archive: nothing that pins are made of.
    case other

    /// What kind of value it is, for errors.
    var kind: String {
        switch self {
        case .dictionary: "a dictionary"
        case .array: "an array"
        case .string: "a string"
        case .boolean: "a truth value"
        case .integer: "a number"
        case .date: "a date"
        case .other: "of another kind"
        }
    }

    /// Reads a property list, XML or binary.
    static func parse(_ contents: [UInt8]) throws(PinFormatError) -> PropertyList {
        if contents.starts(with: "bplist".utf8) {
            return try BinaryPropertyList.parse(contents)
        }
        let root = try XMLReader.parse(contents)
        guard root.name == "plist", root.children.count == 1 else {
            throw PinFormatError(
                "line \(root.line)", "the root element is \(root.name)",
                expected: "plist with one value")
        }
        return try value(root.children[0])
    }

    private static func value(_ element: XMLElement) throws(PinFormatError) -> PropertyList {
        let place = "line \(element.line)"
        switch element.name {
        case "dict":
            var pairs: [(key: String, value: PropertyList)] = []
            var rest = element.children[...]
            while let key = rest.popFirst() {
                guard key.name == "key", let next = rest.popFirst() else {
                    throw PinFormatError(
                        "line \(key.line)", "the dictionary has \(key.name) without its partner",
                        expected: "key and value in turn")
                }
                guard !pairs.contains(where: { $0.key == key.text }) else {
                    throw PinFormatError(
                        "line \(key.line)", "the key \"\(key.text)\" is there twice",
                        expected: "each key once")
                }
                pairs.append((key.text, try value(next)))
            }
            return .dictionary(pairs)
        case "array":
            var values: [PropertyList] = []
            for child in element.children { values.append(try value(child)) }
            return .array(values)
        case "string": return .string(element.text)
        case "true": return .boolean(true)
        case "false": return .boolean(false)
        case "integer":
            guard let number = Int64(element.trimmedText) else {
                throw PinFormatError(place, "this is no whole number", expected: "digits")
            }
            return .integer(number)
        case "date": return .date(try PinFormat.day(element.trimmedText, at: place))
        case "data", "real": return .other
        default:
            throw PinFormatError(
                place, "\(element.name) is no value of a property list",
                expected: "dict, array, string, true, false, integer, real, date or data")
        }
    }
}

/// Reads the binary form, `bplist00`: objects that name each other by number, a table of where they
/// are, and a trailer of 32 bytes that says how large everything is.
private struct BinaryPropertyList {
    private let bytes: [UInt8]
    private var offsets: [Int] = []
    private var referenceBytes = 1
    /// Values still to be read at most: objects may name each other many times over.
    private var budget = 100_000

    private static let maximumDepth = 64
    private static let trailerBytes = 32
    /// 2001-01-01, from which dates count.
    private static let epoch: Int64 = 978_307_200

    static func parse(_ contents: [UInt8]) throws(PinFormatError) -> PropertyList {
        guard contents.starts(with: "bplist00".utf8) else {
            throw error("the version of the binary property list is not known", at: 6)
        }
        guard contents.count >= 8 + trailerBytes else {
            throw error("the binary property list is cut off", at: contents.count)
        }
        var reader = BinaryPropertyList(bytes: contents)
        let top = try reader.readTable()
        return try reader.object(top, depth: 0)
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private static func error(_ problem: String, at offset: Int) -> PinFormatError {
        PinFormatError("byte \(offset)", problem, expected: "a binary property list (bplist00)")
    }

    /// A number of so many bytes, most significant first; nil: it is not all there, or too large.
    private func number(at offset: Int, bytes count: Int) -> Int? {
        guard (1...8).contains(count), offset >= 0, offset <= bytes.count - count else {
            return nil
        }
        let value = bytes[offset..<offset + count].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(exactly: value)
    }

    /// Reads the table of offsets; returns the number of the root.
    private mutating func readTable() throws(PinFormatError) -> Int {
        let trailer = bytes.count - Self.trailerBytes
        let offsetBytes = Int(bytes[trailer + 6])
        referenceBytes = Int(bytes[trailer + 7])
        guard let count = number(at: trailer + 8, bytes: 8),
            let top = number(at: trailer + 16, bytes: 8),
            let table = number(at: trailer + 24, bytes: 8), (1...8).contains(offsetBytes),
            (1...8).contains(referenceBytes), count > 0, count <= trailer / offsetBytes,
            table >= 8, table <= trailer - count * offsetBytes
        else { throw Self.error("the trailer is damaged", at: trailer) }
        for index in 0..<count {
            guard let offset = number(at: table + index * offsetBytes, bytes: offsetBytes),
                offset >= 8, offset < table
            else {
                throw Self.error("the table of offsets is damaged", at: table)
            }
            offsets.append(offset)
        }
        return top
    }

    private mutating func object(_ index: Int, depth: Int) throws(PinFormatError) -> PropertyList {
        guard offsets.indices.contains(index) else {
            throw Self.error("object \(index) does not exist", at: bytes.count)
        }
        let offset = offsets[index]
        budget -= 1
        guard depth < Self.maximumDepth, budget > 0 else {
            throw Self.error("objects are nested too deep, or too many", at: offset)
        }
        let marker = bytes[offset]
        let low = Int(marker & 0x0F)
        switch marker >> 4 {
        case 0x0 where low == 8: return .boolean(false)
        case 0x0 where low == 9: return .boolean(true)
        case 0x1:
            guard low <= 3, let value = number(at: offset + 1, bytes: 1 << low) else {
                return .other
            }
            return .integer(Int64(value))
        case 0x3:
            guard marker == 0x33, let value = real(at: offset + 1) else {
                throw Self.error("a date is damaged", at: offset)
            }
            return .date(value + Self.epoch)
        case 0x2, 0x4, 0x8: return .other
        case 0x5, 0x6: return .string(try text(at: offset, isWide: marker >> 4 == 6))
        case 0xA:
            let (count, start) = try size(at: offset)
            var values: [PropertyList] = []
            for position in 0..<count {
                values.append(try referred(start + position * referenceBytes, depth: depth))
            }
            return .array(values)
        case 0xD:
            let (count, start) = try size(at: offset)
            var pairs: [(key: String, value: PropertyList)] = []
            for position in 0..<count {
                let key = try referred(start + position * referenceBytes, depth: depth)
                guard case .string(let text) = key else {
                    throw Self.error("a key is \(key.kind), not a string", at: offset)
                }
                let value = try referred(
                    start + (count + position) * referenceBytes, depth: depth)
                pairs.append((text, value))
            }
            return .dictionary(pairs)
        default: throw Self.error("an object's kind is not known", at: offset)
        }
    }

    private mutating func referred(_ place: Int, depth: Int) throws(PinFormatError) -> PropertyList
    {
        guard let index = number(at: place, bytes: referenceBytes) else {
            throw Self.error("a reference is cut off", at: place)
        }
        return try object(index, depth: depth + 1)
    }

    /// How many elements the object at an offset has, and where they begin.
    private func size(at offset: Int) throws(PinFormatError) -> (count: Int, start: Int) {
        let low = Int(bytes[offset] & 0x0F)
        if low < 0xF { return (low, offset + 1) }
        guard offset + 1 < bytes.count, bytes[offset + 1] >> 4 == 1 else {
            throw Self.error("a size is damaged", at: offset)
        }
        let width = 1 << Int(bytes[offset + 1] & 0x0F)
        guard width <= 8, let count = number(at: offset + 2, bytes: width), count <= bytes.count
        else { throw Self.error("a size is damaged", at: offset) }
        return (count, offset + 2 + width)
    }

    private func text(at offset: Int, isWide: Bool) throws(PinFormatError) -> String {
        let (count, start) = try size(at: offset)
        let length = isWide ? count * 2 : count
        guard length <= bytes.count - start else {
            throw Self.error("a string is cut off", at: offset)
        }
        let content = bytes[start..<start + length]
        guard isWide else { return String(decoding: content, as: UTF8.self) }
        let units = stride(from: start, to: start + length, by: 2).map {
            UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
        }
        return String(decoding: units, as: UTF16.self)
    }

    /// A floating-point number, cut to a whole one; nil: it is not all there, or out of range.
    private func real(at offset: Int) -> Int64? {
        guard offset <= bytes.count - 8 else { return nil }
        let bits = bytes[offset..<offset + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int64(exactly: Double(bitPattern: bits).rounded(.down)).flatMap {
            abs($0) < 1 << 40 ? $0 : nil
        }
    }
}
