import Testing

@testable import Trust

/// Hellos around a HelloRetryRequest, assembled for tests.
enum Retry {
    static let group = 24
    static let retryRandom: [UInt8] = [
        0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8,
        0x91, 0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8,
        0x33, 0x9C,
    ]
    static let session: [UInt8] = [7, 7, 7]
    static let sign = Wire.ext(43, [3, 4])
    static let versions = Wire.ext(43, [4, 3, 4, 3, 3])
    static let groups = Wire.ext(
        10, Wire.vector([29, 23, 24, 25].flatMap(Wire.short), lengthBytes: 2))
    static let protocols = Wire.ext(16, Wire.vector([2] + Array("h2".utf8), lengthBytes: 2))
    static let encrypted = Wire.ext(
        0xFE0D,
        [0, 0, 1, 0, 1, 9] + Wire.vector([1, 2], lengthBytes: 2) + Wire.vector([3], lengthBytes: 2))
    static let unknown = Wire.ext(0x0A0A, [1])
    static let early = Wire.ext(42, [])
    static let cookie = Wire.ext(44, Wire.vector([5, 6], lengthBytes: 2))

    /// Key shares of these groups.
    static func keys(_ groups: [Int]) -> [UInt8] {
        Wire.ext(
            51,
            Wire.vector(
                groups.flatMap { Wire.short($0) + Wire.vector([1, 2, 3], lengthBytes: 2) },
                lengthBytes: 2))
    }

    static func preShared(_ identities: [[UInt8]], age: UInt8 = 0, binder: UInt8 = 1) -> [UInt8] {
        Wire.ext(
            41,
            Wire.vector(
                identities.flatMap { Wire.vector($0, lengthBytes: 2) + [0, 0, 0, age] },
                lengthBytes: 2)
                + Wire.vector(
                    identities.flatMap { _ in
                        Wire.vector([UInt8](repeating: binder, count: 32), lengthBytes: 1)
                    }, lengthBytes: 2))
    }

    /// What is the same in both ClientHellos.
    static let fixed = [
        Wire.name("a.test"), versions, groups, protocols, encrypted, unknown, Wire.ext(35, []),
    ]

    static func body(
        session: [UInt8] = session, suites: [Int] = [0x1301, 0x1302], _ extensions: [[UInt8]]
    ) -> [UInt8] {
        Wire.clientHello(session: session, suites: suites, extensions: extensions)
    }

    static func request(_ extensions: [[UInt8]]) -> [UInt8] {
        Wire.serverHello(
            random: retryRandom, session: session, suite: 0x1301, extensions: [sign] + extensions)
    }

    static let asked = Wire.ext(51, Wire.short(group))

    /// The continuation after a first ClientHello and what the server sent.
    static func start(
        _ first: [UInt8], _ answer: [UInt8], pieces: Int = 1 << 16, then: [UInt8] = [],
        readsEncryptedHello: Bool = false
    ) throws -> HelloRetry? {
        var flight = ServerFlight(answering: try ClientHello(first))
        let bytes = Wire.handshake(answer) + then
        #expect(try Wire.finding(bytes, &flight, pieces: pieces) == .encrypted)
        return try flight.retry(readsEncryptedHello: readsEncryptedHello)
    }

    /// The result of a client's bytes in pieces of a size.
    static func say(
        _ bytes: [UInt8], to retry: inout HelloRetry, pieces: Int = 1 << 16
    ) throws -> HelloRetry.ClientOutcome? {
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            let piece = bytes[start..<min(start + pieces, bytes.count)]
            switch try piece.withUnsafeBytes({ try retry.takeFromClient($0) }) {
            case .agrees(let count): return .agrees(count: start + count)
            case .leaves: return .leaves
            case nil: continue
            }
        }
        return nil
    }

    static func answer(
        _ bytes: [UInt8], to retry: inout HelloRetry, pieces: Int = 1 << 16
    ) throws -> HelloRetry.ServerOutcome? {
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            let piece = bytes[start..<min(start + pieces, bytes.count)]
            if let found = try piece.withUnsafeBytes({ try retry.takeFromServer($0) }) {
                return found
            }
        }
        return nil
    }

    /// Whether a second ClientHello is accepted as consistent with the first, and if not, why.
    static func fault(
        first: [[UInt8]], second: [UInt8], request: [[UInt8]] = [asked],
        readsEncryptedHello: Bool = false
    ) throws -> TLSWireError? {
        guard
            var retry = try start(
                body(first), Self.request(request), readsEncryptedHello: readsEncryptedHello)
        else {
            Issue.record("no request")
            return nil
        }
        do {
            #expect(try say(Wire.handshake(Wire.message(1, second)), to: &retry) != nil)
            #expect(retry.isAgreed)
            return nil
        } catch let error as TLSWireError {
            #expect(!retry.isAgreed)
            return error
        }
    }
}
