import Trust

/// TLS messages that the checks begin with.
enum TLSBytes {
    static func short(_ number: Int) -> [UInt8] {
        [UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF)]
    }

    static func vector(_ bytes: [UInt8], lengthBytes: Int) -> [UInt8] {
        (0..<lengthBytes).reversed().map { UInt8(bytes.count >> (8 * $0) & 0xFF) } + bytes
    }

    static func record(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
        [type, 3, 3] + vector(content, lengthBytes: 2)
    }

    /// A message, in records of its own.
    static func message(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
        let bytes = [type] + vector(body, lengthBytes: 3)
        return stride(from: 0, to: bytes.count, by: 1 << 14).flatMap {
            record(22, Array(bytes[$0..<min($0 + 1 << 14, bytes.count)]))
        }
    }

    /// The size of what precedes the body of the first message in a record.
    static let headerBytes = 9

    static let cipherChange = record(20, [1])

    /// Reads the body of a ClientHello that is known to be one.
    static func read(_ body: [UInt8]) throws(FuzzCheckError) -> ClientHello {
        do throws(TLSWireError) { return try ClientHello(body) } catch {
            throw FuzzCheckError("a ClientHello that cannot be read: \(error)")
        }
    }

    static func ext(_ type: Int, _ content: [UInt8]) -> [UInt8] {
        short(type) + vector(content, lengthBytes: 2)
    }

    /// The extension that names the server `a.test`.
    static let name = ext(
        0, vector([0] + vector(Array("a.test".utf8), lengthBytes: 2), lengthBytes: 2))

    private static let random = [UInt8](repeating: 0xC1, count: 32)
    private static let session = [UInt8](1...32)

    /// The body of a ClientHello.
    private static func clientHello(
        version: Int = 0x0303, session: [UInt8] = session, suites: [Int],
        extensions: [[UInt8]]?
    ) -> [UInt8] {
        short(version) + random + vector(session, lengthBytes: 1)
            + vector(suites.flatMap(short), lengthBytes: 2) + [1, 0]
            + (extensions.map { vector($0.flatMap { $0 }, lengthBytes: 2) } ?? [])
    }

    /// ClientHellos that servers answer: one of TLS 1.2 that offers a session and a ticket, one of
    /// TLS 1.0 without extensions, one of TLS 1.3.
    static let clientHellos: [[UInt8]] = [
        clientHello(
            suites: [0xC02B, 0xC02F, 0xC030, 0x009E, 0x002F, 0xCCA8],
            extensions: [name, ext(35, [9, 9, 9]), ext(18, []), ext(5, [1, 0, 0, 0, 0])]),
        clientHello(
            version: 0x0301, session: [], suites: [0xC013, 0x0033, 0x002F], extensions: nil),
        retried(offersEarlyData: false),
    ]

    // MARK: TLS 1.3

    private static let versions = ext(43, [4, 3, 4, 3, 3])
    private static let groups = ext(10, vector([29, 23, 24].flatMap(short), lengthBytes: 2))

    private static func share(_ group: Int) -> [UInt8] {
        let key = short(group) + vector([UInt8](repeating: 7, count: 32), lengthBytes: 2)
        return ext(51, vector(key, lengthBytes: 2))
    }

    /// The body of a ClientHello with a key share on X25519, which a HelloRetryRequest can follow.
    static func retried(offersEarlyData: Bool) -> [UInt8] {
        clientHello(
            suites: [0x1301, 0xC02F],
            extensions: [name, versions, groups, share(29)]
                + (offersEarlyData ? [ext(42, [])] : []))
    }

    private static let retryRandom: [UInt8] = [
        0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8,
        0x91, 0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8,
        0x33, 0x9C,
    ]

    /// A ServerHello of TLS 1.3, or a HelloRetryRequest for a group, a cookie, or both.
    static func serverHello(retryingWith changes: [[UInt8]]? = nil) -> [UInt8] {
        let extensions = [ext(43, [3, 4])] + (changes ?? [])
        let answered = changes == nil ? [UInt8](repeating: 0x5E, count: 32) : retryRandom
        return message(
            2,
            short(0x0303) + answered + vector(session, lengthBytes: 1) + short(0x1301) + [0]
                + vector(extensions.flatMap { $0 }, lengthBytes: 2))
    }

    static let askedGroup = ext(51, short(23))
    static let askedCookie = ext(44, vector([1, 2, 3], lengthBytes: 2))
}
