/// Reads numbers and vectors as TLS encodes them (RFC 8446 §3), each only if all of it is there.
package struct WireReader {
    private var rest: ArraySlice<UInt8>
    /// What the bytes are, for errors.
    private let what: StaticText

    package init(_ bytes: ArraySlice<UInt8>, _ what: StaticText) {
        rest = bytes
        self.what = what
    }

    package var isAtEnd: Bool { rest.isEmpty }

    /// The bytes that have not been read.
    package var remaining: ArraySlice<UInt8> { rest }

    /// Reads a number of this many bytes; of one of eight, the bits.
    package mutating func number(bytes count: Int) throws(TLSWireError) -> Int {
        try take(count).reduce(0) { $0 << 8 | Int($1) }
    }

    package mutating func byte() throws(TLSWireError) -> UInt8 { UInt8(try number(bytes: 1)) }

    package mutating func short() throws(TLSWireError) -> UInt16 { UInt16(try number(bytes: 2)) }

    /// Reads this many bytes.
    package mutating func take(_ count: Int) throws(TLSWireError) -> ArraySlice<UInt8> {
        guard count <= rest.count else { throw .malformed(what) }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// Reads a vector that is preceded by its length in this many bytes.
    package mutating func vector(lengthBytes: Int) throws(TLSWireError) -> ArraySlice<UInt8> {
        try take(try number(bytes: lengthBytes))
    }

    /// Reads a vector of 16-bit numbers, at least one.
    package mutating func shorts(lengthBytes: Int) throws(TLSWireError) -> [UInt16] {
        var inner = WireReader(try vector(lengthBytes: lengthBytes), what)
        var found: [UInt16] = []
        while !inner.isAtEnd { found.append(try inner.short()) }
        guard !found.isEmpty else { throw .malformed(what) }
        return found
    }

    /// Reads a vector of vectors, at least one, none of them empty.
    package mutating func vectors(
        lengthBytes: Int, eachLengthBytes: Int
    ) throws(TLSWireError) -> [ArraySlice<UInt8>] {
        var inner = WireReader(try vector(lengthBytes: lengthBytes), what)
        var found: [ArraySlice<UInt8>] = []
        repeat {
            found.append(try inner.vector(lengthBytes: eachLengthBytes))
            guard found.last?.isEmpty == false else { throw .malformed(what) }
        } while !inner.isAtEnd
        return found
    }

    /// Checks that no bytes remain.
    package func end() throws(TLSWireError) {
        guard rest.isEmpty else { throw .malformed(what) }
    }

    /// Reads the extensions of a message, each of which may occur once (RFC 8446 §4.2).
    mutating func extensions() throws(TLSWireError) -> HelloExtensions {
        var found = HelloExtensions()
        var inner = WireReader(try vector(lengthBytes: 2), what)
        while !inner.isAtEnd {
            let type = try inner.short()
            let content = try inner.vector(lengthBytes: 2)
            guard found.add(type, content) else {
                throw .malformed("a duplicate extension")
            }
        }
        return found
    }
}

/// The extensions of a message, in order.
struct HelloExtensions: Hashable {
    struct Entry: Hashable {
        let type: UInt16
        let content: ArraySlice<UInt8>
    }

    private(set) var entries: [Entry] = []
    private var types: Set<UInt16> = []

    subscript(type: UInt16) -> ArraySlice<UInt8>? {
        types.contains(type) ? entries.first { $0.type == type }?.content : nil
    }

    /// Adds an extension; returns false if there already is one of this type.
    mutating func add(_ type: UInt16, _ content: ArraySlice<UInt8>) -> Bool {
        guard types.insert(type).inserted else { return false }
        entries.append(Entry(type: type, content: content))
        return true
    }
}

/// The extensions that are examined (IANA's registry of TLS extensions).
enum ExtensionType {
    static let serverName: UInt16 = 0
    static let supportedGroups: UInt16 = 10
    static let applicationProtocols: UInt16 = 16
    /// SCTs of Certificate Transparency (RFC 6962 §3.3.1).
    static let signedTimestamps: UInt16 = 18
    /// RFC 7685.
    static let padding: UInt16 = 21
    static let sessionTicket: UInt16 = 35
    static let preSharedKey: UInt16 = 41
    static let earlyData: UInt16 = 42
    static let supportedVersions: UInt16 = 43
    static let cookie: UInt16 = 44
    static let keyShare: UInt16 = 51
    /// RFC 9849.
    static let encryptedClientHello: UInt16 = 0xFE0D
    /// Encrypted names according to drafts (ESNI, and ECH up to its 12th draft), and the extension
    /// that belongs only inside an encrypted ClientHello.
    static let encryptedNamesOfDrafts: Set<UInt16> = [
        0xFFCE, 0xFF02, 0xFF03, 0xFE08, 0xFE09, 0xFE0A, 0xFE0B, 0xFE0C, 0xFD00,
    ]
}
