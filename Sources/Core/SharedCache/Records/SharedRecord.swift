/// The form of everything that is stored in the engine:
///
///     0   "PFSC"           8   u32 number of the secret
///     4   u8  major (1)    12  u32 bytes of the fields
///     5   u8  kind         16  fields: u16 number · u32 bytes · bytes, by ascending numbers
///     6   u16 minor            code: HMAC-SHA256 of the name and of all before, 32 bytes
///                              body: what a field with its length and SHA-256 says
///
/// Numbers have their lowest byte first. The code includes the name under which the record is
/// stored, so that nobody can move it to another; it includes the body by its digest, so that the
/// record can be verified, and written anew with another head, without the body.
///
/// **Versions.** Within a major version fields are added, with new numbers: an older program skips
/// those that it does not know, unless their number is ``SharedField/critical`` or above: then it
/// uses nothing of the record. No field changes its meaning or its length. Another major version is
/// a miss.
package struct SharedRecord: Sendable {
    /// What a record is of.
    package enum Kind: UInt8, Sendable, CaseIterable {
        case value = 1
        case chunk = 2
        /// What there is of a key (``SharedIndex``).
        case index = 3
        case lease = 4
        /// A note that responses are not stored (``NotStoredNote``).
        case note = 5
        case purge = 6
        case generation = 7
        /// A key whose responses are not valid any longer (``RemovedKey``).
        case removal = 8
        /// A gateway of the fleet (``SharedMember``).
        case member = 9
        /// A policy for the fleet (``SharedPolicy``).
        case policy = 10
    }

    static let magic = Array("PFSC".utf8)
    /// The same as a number, the lowest byte first.
    private static let magicNumber: UInt32 = 0x4353_4650
    /// The version of the format, and what was added to it.
    static let major: UInt8 = 1
    static let minor: UInt16 = 0
    static let headerBytes = 16
    /// Bytes of all fields at most: a head, a key and a Vary key have their own limits, below this.
    static let maximumFieldBytes = 2 << 20
    /// Fields at most.
    static let maximumFields = 256

    /// Where each of the known fields is, by its number. Not an array: there is a record of each
    /// response that is looked up.
    private let places: InlineArray<24, Place>

    /// Where a field is. None begins at 0, where the header is.
    private struct Place: Sendable {
        var start: UInt32 = 0
        var end: UInt32 = 0
    }

    /// The bytes of the record, without the body.
    package let count: Int

    /// Reads what is kept in an array.
    package static func reading<Value>(
        _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(SharedRecordError) -> Value
    ) throws(SharedRecordError) -> Value {
        let result: Result<Value, SharedRecordError> = bytes.withUnsafeBytes { bytes in
            do throws(SharedRecordError) {
                return .success(try body(bytes))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    // MARK: Writing

    /// Writes a record without its body.
    /// - Parameters:
    ///   - fields: by ascending numbers.
    ///   - name: the name under which it will be stored.
    /// - Returns: `nil` only if the library is out of memory.
    static func write(
        _ kind: Kind, _ fields: [(SharedField, [UInt8])], under name: [UInt8],
        by keyring: SharedKeyring
    ) -> [UInt8]? {
        write(kind, numbered: fields.map { ($0.0.rawValue, $0.1) }, under: name, by: keyring)
    }

    /// The same with the fields' numbers, and as another version would.
    static func write(
        _ kind: Kind, numbered fields: [(UInt16, [UInt8])], under name: [UInt8],
        by keyring: SharedKeyring, major: UInt8 = major, minor: UInt16 = minor
    ) -> [UInt8]? {
        var contents: [UInt8] = []
        contents.reserveCapacity(fields.reduce(0) { $0 + 6 + $1.1.count })
        for (number, content) in fields {
            contents += SharedBytes.number(number)
            contents += SharedBytes.number(UInt32(content.count))
            contents += content
        }
        return seal(kind, contents, under: name, by: keyring, major: major, minor: minor)
    }

    /// A record of fields that are written already.
    package static func seal(
        _ kind: Kind, _ fields: [UInt8], under name: [UInt8], by keyring: SharedKeyring,
        major: UInt8 = 1, minor: UInt16 = 0
    ) -> [UInt8]? {
        let secret = keyring.signing
        var bytes = magic
        bytes.reserveCapacity(headerBytes + fields.count + SharedSecret.codeBytes)
        bytes += [major, kind.rawValue]
        bytes += SharedBytes.number(minor)
        bytes += SharedBytes.number(secret.id)
        bytes += SharedBytes.number(UInt32(fields.count))
        bytes += fields
        guard let code = bytes.withUnsafeBytes({ secret.code(of: $0, under: name) }) else {
            return nil
        }
        return bytes + code.bytes
    }

    // MARK: Reading

    /// The bytes of a record without its body, as its beginning says; `nil` if there is too little
    /// of it to say. Nothing is verified but that it may be one.
    package static func count(
        of bytes: UnsafeRawBufferPointer
    ) throws(SharedRecordError) -> Int? {
        guard bytes.count >= headerBytes else {
            guard bytes.starts(with: magic.prefix(bytes.count)) else { throw .notOurs }
            return nil
        }
        guard SharedBytes.number(bytes, at: 0, as: UInt32.self) == magicNumber else {
            throw .notOurs
        }
        guard bytes[4] == major else { throw .unknownMajor(bytes[4]) }
        let size = SharedBytes.number(bytes, at: 12, as: UInt32.self)
        guard size <= maximumFieldBytes else { throw .wrongLength }
        return headerBytes + Int(size) + SharedSecret.codeBytes
    }

    /// Reads a record, and verifies it.
    /// - Parameters:
    ///   - bytes: the record, and what follows it.
    ///   - name: the name under which it was stored.
    init(
        _ kind: Kind, _ bytes: UnsafeRawBufferPointer, under name: [UInt8],
        by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        guard let count = try Self.count(of: bytes), count <= bytes.count else {
            throw .wrongLength
        }
        let id = SharedBytes.number(bytes, at: 8, as: UInt32.self)
        let end = count - SharedSecret.codeBytes
        let isAccepted = keyring.accepts(
            UnsafeRawBufferPointer(rebasing: bytes[end..<count]),
            of: UnsafeRawBufferPointer(rebasing: bytes[..<end]), under: name, by: id)
        guard let isAccepted else { throw .unknownSecret(id) }
        guard isAccepted else { throw .wrongCode }
        // From here on it is what a gateway has written.
        guard bytes[5] == kind.rawValue else { throw .otherKind(bytes[5]) }
        self.count = count
        places = try Self.places(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
    }

    private static func places(
        _ bytes: UnsafeRawBufferPointer
    ) throws(SharedRecordError) -> InlineArray<24, Place> {
        var places = InlineArray<24, Place>(repeating: Place())
        var place = headerBytes
        var (count, last) = (0, -1)
        while place < bytes.count {
            guard bytes.count - place >= 6 else { throw .malformed }
            let number = SharedBytes.number(bytes, at: place, as: UInt16.self)
            let size = Int(SharedBytes.number(bytes, at: place + 2, as: UInt32.self))
            place += 6
            guard size <= bytes.count - place, count < maximumFields, last < Int(number) else {
                throw .malformed
            }
            guard number < SharedField.critical else { throw .unsupportedField(number) }
            if Int(number) < places.count {
                places[Int(number)] = Place(start: UInt32(place), end: UInt32(place + size))
            }
            (count, last) = (count + 1, Int(number))
            place += size
        }
        return places
    }

    /// Where a field is; `nil` if there is none.
    func range(_ field: SharedField) -> Range<Int>? {
        let place = places[Int(field.rawValue)]
        return place.start > 0 ? Int(place.start)..<Int(place.end) : nil
    }

    /// Where a field is that must be there.
    func required(_ field: SharedField) throws(SharedRecordError) -> Range<Int> {
        guard let range = range(field) else { throw .malformed }
        return range
    }

    /// The bytes of a field that must be there, with this length.
    func content(
        _ field: SharedField, _ bytes: UnsafeRawBufferPointer, count: Int
    ) throws(SharedRecordError) -> UnsafeRawBufferPointer {
        let range = try required(field)
        guard range.count == count else { throw .malformed }
        return UnsafeRawBufferPointer(rebasing: bytes[range])
    }

    /// A record that nothing follows.
    static func alone(
        _ kind: Kind, _ bytes: UnsafeRawBufferPointer, under name: [UInt8],
        by keyring: SharedKeyring
    ) throws(SharedRecordError) -> SharedRecord {
        let record = try SharedRecord(kind, bytes, under: name, by: keyring)
        guard record.count == bytes.count else { throw .wrongLength }
        return record
    }
}

/// The fields of records. A number is never used for another purpose. A record has a place for each
/// number up to the highest (``SharedRecord``).
enum SharedField: UInt16, Sendable, CaseIterable {
    case key = 1
    case varyKey = 2
    /// Request, response, initial age: seconds, 64 bits each; on the engine's clock.
    case times = 3
    /// 64 bits.
    case trust = 4
    case head = 5
    /// The instance of the key's index: 16 bytes.
    case instance = 6
    /// Up to which purge it is known not to be purged: a position.
    case born = 7
    /// Bytes of the body that follows, 64 bits, and its SHA-256.
    case body = 8
    /// The body's identity, 16 bytes; bytes of a chunk, 32 bits; bytes of the body, 64.
    case chunks = 9
    /// Since when it is stale: seconds, 64 bits; on the engine's clock.
    case staleSince = 10
    /// The number of a chunk: 32 bits.
    case chunkIndex = 11
    /// Nothing by now: in an index, by which names responses vary.
    case varyNames = 12
    /// 16 random bytes.
    case token = 13
    /// Which gateway: up to 255 bytes.
    case gateway = 14
    /// A pattern (``PurgePattern``).
    case pattern = 15
    /// Seconds, 64 bits; and whether it is soft, 8.
    case purge = 16
    /// A position in the stream of purges.
    case position = 17
    /// Why: 8 bits.
    case reason = 18
    /// What a gateway says of itself.
    case report = 19
    /// A signed policy.
    case envelope = 20
    /// Which share of the gateways: 8 bits, 1 to 100.
    case share = 21
    /// How long a gateway uses what it has without hearing from the others: milliseconds, 64 bits.
    case grace = 22
    /// Which history of the engine's data: up to 64 bytes.
    case history = 23

    /// Fields from this number on have to be understood.
    static let critical: UInt16 = 0x8000
}
