import HTTPCore
import Testing

@Suite("Known field names")
struct FieldIDTests {
    /// The ID of a field with this name in a head; `nil` if the name is refused.
    private func recognised(_ name: [UInt8], padding: Int = 16) -> FieldID? {
        let bytes =
            latin1("GET / HTTP/1.0\r\n") + name + latin1(":")
            + [UInt8](repeating: 0x61, count: padding) + latin1("\r\n")
        var parser = RequestHeadParser()
        var head = RequestHead()
        _ = try? parser.parse(bytes.span, into: &head)
        return head.fields.first?.id
    }

    private static let known = FieldID.allCases.filter { $0 != .other && $0 != .disguised }

    @Test func `every known name is recognised in any letter case and place`() {
        for id in Self.known {
            let name = latin1("\(id.name)")
            let upper = name.map { $0 >= 0x61 && $0 <= 0x7A ? $0 - 32 : $0 }
            for spelling in [name, name.map(ASCII.lowercased), upper] {
                #expect(recognised(spelling) == id)
                // Without padding, the last bytes of the head are those of the name's line.
                #expect(recognised(spelling, padding: 0) == id)
            }
        }
    }

    @Test func `a name that differs in any one byte is another name`() {
        let names = Dictionary(
            uniqueKeysWithValues: Self.known.map {
                (latin1("\($0.name)").map(ASCII.lowercased), $0)
            })
        for name in names.keys {
            for position in name.indices {
                for byte in UInt8.min...UInt8.max where ByteClass.isToken(byte) {
                    var changed = name
                    changed[position] = byte
                    let isDisguised =
                        byte == UInt8(ascii: "_") && name[position] == UInt8(ascii: "-")
                        && names[name].map { FieldID.disguisable.contains($0) } ?? false
                    let isUser =
                        byte == UInt8(ascii: "_") && name[position] == UInt8(ascii: "-")
                        && names[name] == .xForwardedUser
                    let expected =
                        names[changed.map(ASCII.lowercased)]
                        ?? (isDisguised ? .disguised : isUser ? .xForwardedUser : .other)
                    if recognised(changed, padding: 0) != expected {
                        Issue.record("\(changed) is not \(expected)")
                    }
                }
            }
            #expect(recognised(name + [0x78]) == .other)
            if name.count > 2 { #expect(recognised(Array(name.dropLast())) == .other) }
        }
    }

    @Test func `the name of a line is found with its colon, wherever the line is`() {
        for id in Self.known {
            for before in ["", "x", "A: 1\r\n"] {
                for after in ["", " value\r\n"] {
                    let bytes = latin1("\(before)\(id.name):\(after)")
                    let found = FieldID.name(from: before.utf8.count, in: bytes.span)
                    #expect(found?.id == id)
                    #expect(found?.colon == bytes.count - after.utf8.count - 1)
                }
            }
        }
        let other = FieldID.name(from: 0, in: latin1("X-Mine: 1").span)
        #expect(other?.id == .other)
        #expect(other?.colon == 6)
        for text in ["", ":", ": a", "Date", "Date : a", "Date\r\n:", " Date:", "D\u{E4}te:"] {
            #expect(FieldID.name(from: 0, in: latin1(text).span) == nil, "\(text)")
        }
        #expect(FieldID.name(from: 5, in: latin1("Date:").span) == nil)
    }

    @Test func `a set of fields is one word and holds what was put in`() {
        #expect(FieldID.allCases.count <= 64)
        for id in FieldID.allCases {
            var set = FieldIDSet(id)
            #expect(set.contains(id))
            #expect(set.ids == [id])
            #expect(set.intersects([FieldIDSet(.other), FieldIDSet(id)]))
            set.remove(id)
            #expect(set.isEmpty)
            set.insert(id)
            #expect(set == FieldIDSet([id]))
        }
        #expect(!FieldIDSet([.host, .date]).intersects(FieldIDSet([.age, .via])))
    }

    @Test func `a section knows what is present, repeated and how often`() throws {
        let head = try requestHead(
            "GET / HTTP/1.1\r\nHost: a\r\nVia: 1\r\nX: 1\r\nvia: 2\r\nVIA: 3\r\n\r\n")
        #expect(head.fields.count == 5)
        #expect(head.fields.contains(.via) && head.fields.contains(.other))
        #expect(!head.fields.contains(.date))
        #expect(head.fields.repeated == FieldIDSet(.via))
        #expect(head.fields.count(of: .via) == 3)
        #expect(head.fields.count(of: .host) == 1)
        #expect(head.fields.count(of: .date) == 0)
        #expect(head.fields.only(.host)?.id == .host)
        #expect(head.fields.only(.via) == nil)
        #expect(head.fields.only(.date) == nil)
        #expect(head.fields.first(.via) == head.fields[1])
        #expect(head.fields.map(\.id) == [.host, .via, .other, .via, .via])
    }

    @Test func `a head that is used again keeps its memory`() throws {
        let many = (0..<50).map { "X-\($0): y\r\n" }.joined()
        var head = try requestHead("GET / HTTP/1.1\r\nHost: a\r\n\(many)\r\n")
        func address() -> UnsafePointer<Field>? {
            head.fields.withContiguousStorageIfAvailable { $0.baseAddress } ?? nil
        }
        let before = address()
        #expect(before != nil)
        let few = latin1("GET / HTTP/1.1\r\nHost: b\r\nConnection: x\r\nX: 1\r\n\r\n")
        #expect(parseRequest(few, reusing: &head).isComplete)
        #expect(head.fields.count == 3)
        #expect(address() == before)
    }
}
