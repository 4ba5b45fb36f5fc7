import CachePolicy
import TestSupport
import Testing

@testable import SharedCache

@Suite("Records in the engine")
struct SharedRecordTests {
    @Test func `are read as they were written`() throws {
        let keyring = try Sample.keyring(1)
        for sample in try Sample.alone(by: keyring) {
            #expect(try sample.read(sample.bytes, Sample.name, keyring), "\(sample.name)")
        }
    }

    @Test func `are refused with any bit changed`() throws {
        let keyring = try Sample.keyring(1)
        for sample in try Sample.alone(by: keyring) {
            for place in sample.bytes.indices {
                for bit in 0..<8 {
                    var bytes = sample.bytes
                    bytes[place] ^= 1 << bit
                    #expect(throws: SharedRecordError.self, "\(sample.name) \(place) \(bit)") {
                        try sample.read(bytes, Sample.name, keyring)
                    }
                }
            }
        }
    }

    @Test func `are refused if they are cut, or longer`() throws {
        let keyring = try Sample.keyring(1)
        for sample in try Sample.alone(by: keyring) {
            for count in 0..<sample.bytes.count {
                #expect(throws: SharedRecordError.self, "\(sample.name) \(count)") {
                    try sample.read(Array(sample.bytes[..<count]), Sample.name, keyring)
                }
            }
            #expect(throws: SharedRecordError.wrongLength, "\(sample.name)") {
                try sample.read(sample.bytes + [0], Sample.name, keyring)
            }
        }
    }

    @Test func `are refused under another name, or as another kind`() throws {
        let keyring = try Sample.keyring(1)
        let samples = try Sample.alone(by: keyring)
        for sample in samples {
            for name in [Sample.name + [0], Array(Sample.name.dropLast()), []] {
                #expect(throws: SharedRecordError.wrongCode) {
                    try sample.read(sample.bytes, name, keyring)
                }
            }
            for other in samples where other.name != sample.name {
                #expect(throws: SharedRecordError.otherKind(sample.bytes[5])) {
                    try other.read(sample.bytes, Sample.name, keyring)
                }
            }
        }
    }

    @Test func `are refused with another secret`() throws {
        let keyring = try Sample.keyring(1)
        let other = try Sample.keyring(2)
        let id = try #require(Sample.secret(1)).id
        for sample in try Sample.alone(by: keyring) {
            #expect(throws: SharedRecordError.unknownSecret(id)) {
                try sample.read(sample.bytes, Sample.name, other)
            }
            // One that claims to be of the other.
            var forged = sample.bytes
            let otherID = SharedBytes.number(try #require(Sample.secret(2)).id)
            forged.replaceSubrange(8..<12, with: otherID)
            #expect(throws: SharedRecordError.wrongCode) {
                try sample.read(forged, Sample.name, other)
            }
        }
    }

    @Test func `are read while the secret is being changed`() throws {
        let before = try Sample.keyring(1)
        let steps = [
            try Sample.keyring(1, 2), try Sample.keyring(2, 1), try Sample.keyring(2),
        ]
        for (written, read) in [
            (before, steps[0]), (steps[0], before), (steps[0], steps[1]), (steps[1], steps[0]),
            (steps[1], steps[2]), (steps[2], steps[1]),
        ] {
            for sample in try Sample.alone(by: written) {
                #expect(try sample.read(sample.bytes, Sample.name, read), "\(sample.name)")
            }
        }
    }

    @Test func `without a secret are still not damaged`() throws {
        let none = try #require(SharedSecret.none)
        let keyring = try #require(SharedKeyring([none]))
        for sample in try Sample.alone(by: keyring) {
            #expect(try sample.read(sample.bytes, Sample.name, keyring))
            for place in sample.bytes.indices {
                var bytes = sample.bytes
                bytes[place] ^= 0x10
                #expect(throws: SharedRecordError.self) {
                    try sample.read(bytes, Sample.name, keyring)
                }
            }
        }
    }

    /// A program of another version writes fields that this one does not know.
    @Test func `of another minor version are read, those of another major one are not`() throws {
        let keyring = try Sample.keyring(1)
        let known: [(UInt16, [UInt8])] = [(SharedField.reason.rawValue, [7])]
        func note(
            _ fields: [(UInt16, [UInt8])], major: UInt8 = 1, minor: UInt16 = 0
        ) throws -> NotStoredNote {
            let bytes = try #require(
                SharedRecord.write(
                    .note, numbered: fields, under: Sample.name, by: keyring, major: major,
                    minor: minor))
            return try bytes.withUnsafeBytes {
                try NotStoredNote($0, under: Sample.name, by: keyring)
            }
        }
        #expect(try note(known).reason == 7)
        #expect(try note(known, minor: 9).reason == 7)
        #expect(try note(known + [(999, [1, 2, 3]), (0x7FFF, [])], minor: 1).reason == 7)
        #expect(throws: SharedRecordError.unsupportedField(0x8000)) {
            try note(known + [(0x8000, [])])
        }
        for major: UInt8 in [0, 2, 255] {
            #expect(throws: SharedRecordError.unknownMajor(major)) {
                try note(known, major: major)
            }
        }
    }

    @Test func `are malformed if a field has no valid form`() throws {
        let keyring = try Sample.keyring(1)
        let reason = SharedField.reason.rawValue
        let wrong: [[(UInt16, [UInt8])]] = [
            [], [(reason, [])], [(reason, [1, 2])], [(reason, [1]), (reason, [1])],
            [(reason + 1, []), (reason, [1])],
        ]
        for fields in wrong {
            let bytes = try #require(
                SharedRecord.write(.note, numbered: fields, under: Sample.name, by: keyring))
            #expect(throws: SharedRecordError.malformed) {
                try bytes.withUnsafeBytes {
                    try NotStoredNote($0, under: Sample.name, by: keyring)
                }
            }
        }
        let many = (0..<UInt16(SharedRecord.maximumFields + 1)).map {
            (1000 + $0, [UInt8]())
        }
        let bytes = try #require(
            SharedRecord.write(.note, numbered: many, under: Sample.name, by: keyring))
        #expect(throws: SharedRecordError.malformed) {
            try bytes.withUnsafeBytes { try NotStoredNote($0, under: Sample.name, by: keyring) }
        }
    }

    @Test func `have each of their known fields where it is`() throws {
        let keyring = try Sample.keyring(1)
        for missing in [nil] + SharedField.allCases.map(Optional.some) {
            var fields = SharedField.allCases.filter { $0 != missing }.map {
                ($0.rawValue, [UInt8](repeating: UInt8($0.rawValue), count: Int($0.rawValue) - 1))
            }
            fields.append((SharedField.critical - 1, [1, 2]))
            fields.insert((0, [3]), at: 0)
            let bytes = try #require(
                SharedRecord.write(.note, numbered: fields, under: Sample.name, by: keyring))
            let record = try bytes.withUnsafeBytes {
                try SharedRecord.alone(.note, $0, under: Sample.name, by: keyring)
            }
            for field in SharedField.allCases {
                let content = record.range(field).map { Array(bytes[$0]) }
                let written = fields.first { $0.0 == field.rawValue }?.1
                #expect(content == written, "\(field) without \(String(describing: missing))")
            }
        }
    }

    @Test func `say how long they are when they begin`() throws {
        let keyring = try Sample.keyring(1)
        for sample in try Sample.alone(by: keyring) {
            for count in 0...sample.bytes.count {
                let said = try sample.bytes[..<count].withUnsafeBytes {
                    try SharedRecord.count(of: $0)
                }
                #expect(said == (count < 16 ? nil : sample.bytes.count))
            }
        }
        let others: [([UInt8], SharedRecordError)] = [
            (Array("x".utf8), .notOurs), (Array("PFSD".utf8), .notOurs),
            (Array("PFSC".utf8) + [2] + [UInt8](repeating: 0, count: 11), .unknownMajor(2)),
            (
                Array("PFSC".utf8) + [1] + [UInt8](repeating: 255, count: 11), .wrongLength
            ),
        ]
        for (bytes, error) in others {
            #expect(throws: error) {
                try bytes.withUnsafeBytes { try SharedRecord.count(of: $0) }
            }
        }
    }

    @Test func `that are wrong are left or deleted`() {
        let handlings: [(SharedRecordError, SharedRecordHandling)] = [
            (.notOurs, .leave), (.unknownMajor(2), .leave), (.unsupportedField(1), .leave),
            (.otherKey, .leave), (.unknownSecret(1), .leaveAndReport),
            (.wrongCode, .deleteAndReport), (.wrongBody, .deleteAndReport),
            (.wrongLength, .deleteAndReport), (.otherKind(1), .deleteAndReport),
            (.malformed, .deleteAndReport),
        ]
        for (error, handling) in handlings { #expect(error.handling == handling) }
    }

    /// The figures of RFC 4231 do not apply, since the key is derived; these were computed by
    /// Python's hmac and hashlib.
    @Test func `have the code that another program computes`() throws {
        let secret = try #require(Sample.secret(1))
        #expect(secret.id == expectedID)
        let code = try #require(
            Array("record".utf8).withUnsafeBytes {
                secret.code(of: $0, under: Array("name".utf8))
            })
        #expect(String(decoding: SharedName.hexadecimal(code.bytes), as: UTF8.self) == expectedCode)
    }

    @Test func `need a secret of some length, and a few of them`() throws {
        #expect(SharedSecret([UInt8](repeating: 1, count: 31)) == nil)
        #expect(SharedSecret([UInt8](repeating: 1, count: 1025)) == nil)
        #expect(SharedSecret([UInt8](repeating: 1, count: 1024)) != nil)
        let secret = try #require(Sample.secret(1))
        #expect(SharedKeyring([]) == nil)
        #expect(SharedKeyring(Array(repeating: secret, count: 5)) == nil)
    }
}

private let expectedID: UInt32 = 0xC828_AC90
private let expectedCode =
    "2fa2053d7de13e24f6840790b3e9bb2dfe80c6ba68e2ff0234b384269badcaff"
