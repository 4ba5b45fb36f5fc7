import HTTPCore
import Testing

@testable import Trust

/// A digest of 32 equal bytes.
private func digest(_ byte: UInt8) -> SHA256Digest {
    guard let digest = SHA256Digest([UInt8](repeating: byte, count: 32).span) else {
        fatalError("32 bytes")
    }
    return digest
}

/// A timestamp in its wire form.
private func sct(
    _ log: UInt8, at seconds: UInt64 = 900, version: UInt8 = 0, extensions: [UInt8] = [],
    hash: UInt8 = 4, algorithm: UInt8 = 3, signature: [UInt8] = [0x5A]
) -> [UInt8] {
    var bytes = [version] + [UInt8](repeating: log, count: 32)
    for shift in stride(from: UInt64(56), through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: (seconds * 1000) >> shift))
    }
    bytes += [UInt8(extensions.count >> 8), UInt8(extensions.count & 255)] + extensions
    bytes += [hash, algorithm, 0, UInt8(signature.count)] + signature
    return bytes
}

/// A list of timestamps.
private func list(_ elements: [UInt8]...) -> [UInt8] {
    var content: [UInt8] = []
    for element in elements {
        content += [UInt8(element.count >> 8), UInt8(element.count & 255)] + element
    }
    return [UInt8(content.count >> 8), UInt8(content.count & 255)] + content
}

@Suite("Timestamps of Certificate Transparency")
struct SignedTimestampTests {
    @Test func `one is read as it is written`() throws {
        let bytes = sct(7, at: 12, extensions: [1, 2], signature: [3, 4, 5])
        let read = try SignedTimestamp(bytes[...])
        #expect(read.log == digest(7))
        #expect(read.milliseconds == 12_000)
        #expect(read.extensions == [1, 2])
        #expect(read.signature == [3, 4, 5])
        #expect(read.hasAllowedAlgorithm)
    }

    @Test func `a truncated timestamp, or one with more bytes, is refused`() {
        let whole = sct(7, extensions: [1, 2], signature: [3, 4, 5])
        for count in 0..<whole.count {
            #expect(throws: TimestampRejectionReason.malformed) {
                try SignedTimestamp(whole.prefix(count))
            }
        }
        #expect(throws: TimestampRejectionReason.malformed) {
            try SignedTimestamp((whole + [0])[...])
        }
        #expect(throws: TimestampRejectionReason.unknownVersion(1)) {
            try SignedTimestamp(sct(7, version: 1)[...])
        }
    }

    @Test func `a truncated list is refused`() throws {
        let whole = list(sct(1), sct(2))
        #expect(try SignedTimestamp.list(whole[...]).count == 2)
        for count in 0..<whole.count {
            #expect(throws: TimestampRejectionReason.malformedList) {
                try SignedTimestamp.list(whole.prefix(count))
            }
            // The length of the list is right, but those of the elements are not.
            guard count >= 2 else { continue }
            var cut = Array(whole.prefix(count))
            (cut[0], cut[1]) = (UInt8((count - 2) >> 8), UInt8((count - 2) & 255))
            let found = try? SignedTimestamp.list(cut[...])
            #expect(found == nil || found?.count == 1, "cut after \(count) bytes")
        }
        for wrong in [[0, 0], list([]), whole + [0], list(sct(1), [])] {
            #expect(throws: TimestampRejectionReason.malformedList) {
                try SignedTimestamp.list(wrong[...])
            }
        }
        // One element is wrong by itself.
        let mixed = try SignedTimestamp.list(list(sct(1, version: 9), [1, 2], sct(3))[...])
        #expect(mixed.count == 3)
        #expect(mixed[0] == .failure(.unknownVersion(9)))
        #expect(mixed[1] == .failure(.unknownVersion(1)))
        #expect(try mixed[2].get().log == digest(3))
    }

    @Test func `what is signed is as in RFC 6962`() throws {
        let one = try SignedTimestamp(sct(1, at: 1, extensions: [0xEE])[...])
        #expect(
            one.signedContent(of: .certificate([0xAA, 0xBB]))
                == [0, 0, 0, 0, 0, 0, 0, 0, 3, 0xE8, 0, 0, 0, 0, 2, 0xAA, 0xBB, 0, 1, 0xEE])
        #expect(
            one.signedContent(of: .precertificate(issuerKey: digest(9), signed: [0xCC]))
                == [0, 0, 0, 0, 0, 0, 0, 0, 3, 0xE8, 0, 1] + [UInt8](repeating: 9, count: 32)
                + [0, 0, 1, 0xCC, 0, 1, 0xEE])
        #expect(
            one.signedContent(of: .certificate([UInt8](repeating: 0, count: 1 << 24))) == nil)
    }
}

@Suite("What servers show of Certificate Transparency")
struct TransparencyEvaluationTests {
    private static func log(
        _ byte: UInt8, _ state: TransparencyLog.State?, since: Int64 = 0,
        expiries: Range<Int64>? = nil
    ) -> TransparencyLog {
        TransparencyLog(
            name: "log \(byte)", id: digest(byte), key: [byte], state: state, stateSince: since,
            expiries: expiries)
    }

    private static let logs = [
        log(1, .usable), log(2, .qualified), log(3, .readonly), log(4, .retired, since: 900),
        log(5, .pending), log(6, .rejected), log(7, nil), log(8, .usable, expiries: 0..<2000),
        log(9, .usable, expiries: 2000..<2001), log(10, .retired, since: 900),
        TransparencyLog(
            name: "log 11", id: digest(11), key: [], hasKnownKey: false, state: .usable),
    ]

    /// The verdict at time 1000 on a certificate that expires at 2000. A signature is valid if it
    /// is `5A`, unless it covers something other than the source's entry.
    private func failure(
        _ minimum: Int, _ lists: (TimestampSource, [UInt8])..., issuer: UInt8? = 0x22,
        asked: ((TransparencyLog) -> Void)? = nil
    ) -> TransparencyError? {
        let evidence = TransparencyEvidence(
            lists: lists.map { (source: $0.0, bytes: $0.1) }, certificate: [0xCE],
            precertificate: [0xFE], issuerKey: issuer.map(digest), notAfter: 2000)
        return TransparencyPolicy(minimum: minimum, logs: Self.logs).failure(
            of: evidence, now: 1000
        ) { log, timestamp, content in
            asked?(log)
            #expect(log.id == timestamp.log)
            let isEmbedded = content[11] == 1
            if isEmbedded {
                guard content[12] == 0x22 else { return false }
                #expect(content[47] == 0xFE)
            } else {
                #expect(content[15] == 0xCE)
            }
            return timestamp.signature == [0x5A]
        }
    }

    @Test(arguments: TimestampSource.allCases)
    func `enough of them from anywhere are enough`(source: TimestampSource) {
        #expect(failure(1, (source, list(sct(1)))) == nil)
        #expect(failure(2, (source, list(sct(1), sct(2)))) == nil)
        #expect(failure(3, (source, list(sct(1), sct(2), sct(3)))) == nil)
        #expect(failure(3, (source, list(sct(1), sct(2))))?.valid == 2)
    }

    @Test func `those of all places count together`() {
        #expect(
            failure(
                3, (.certificate, list(sct(1))), (.handshake, list(sct(2))),
                (.status, list(sct(3)))) == nil)
        let same = failure(2, (.certificate, list(sct(1))), (.handshake, list(sct(1, at: 800))))
        #expect(same?.valid == 1)
        #expect(same?.rejected == [.init(.handshake, .sameLog(log: "log 1"))])
    }

    @Test(
        arguments: [
            (sct(1, signature: [0x00]), .wrongSignature(log: "log 1")),
            (sct(1, at: 1301), .inFuture(log: "log 1", at: 1301)), (sct(1, at: 1300), nil),
            (sct(5), .state(.pending, log: "log 5")), (sct(6), .state(.rejected, log: "log 6")),
            (sct(7), .state(nil, log: "log 7")), (sct(8), .otherExpiry(log: "log 8")),
            (sct(9), nil), (sct(77), .unknownLog(digest(77))),
            (sct(1, version: 3), .unknownVersion(3)), (Array(sct(1).dropLast()), .malformed),
            (sct(1, hash: 2), .unknownSignature(log: "log 1")),
            (sct(1, algorithm: 2), .unknownSignature(log: "log 1")),
            (sct(1, algorithm: 1), nil), (sct(11), .unknownKey(log: "log 11")),
            (sct(1, at: UInt64.max / 1000), .inFuture(log: "log 1", at: 18_446_744_073_709_551)),
        ] as [([UInt8], TimestampRejectionReason?)])
    func `each that does not count is reported with its reason`(
        element: [UInt8], why: TimestampRejectionReason?
    ) throws {
        for source in TimestampSource.allCases {
            let found = failure(1, (source, list(element)))
            guard let why else {
                #expect(found == nil)
                continue
            }
            #expect(found?.rejected == [.init(source, why)])
            #expect(found?.valid == 0)
            let text = try #require(found).description
            #expect(text.contains(source.text) && text.contains(why.text))
        }
    }

    @Test func `without the issuer those in the certificate cannot be checked, others can`() {
        let embedded = failure(1, (.certificate, list(sct(1))), issuer: nil)
        #expect(embedded?.rejected == [.init(.certificate, .noIssuer(log: "log 1"))])
        #expect(failure(1, (.handshake, list(sct(1))), issuer: nil) == nil)
        let other = failure(1, (.certificate, list(sct(1))), issuer: 0x11)
        #expect(other?.rejected == [.init(.certificate, .wrongSignature(log: "log 1"))])
    }

    @Test func `a server without any, and one with garbage, have none`() throws {
        let none = try #require(failure(2))
        #expect(none.rejected.isEmpty)
        #expect(
            none.description == "valid certificate timestamps (SCTs) from 2 different logs"
                + " are required, but the server has none")
        let garbage = try #require(failure(1, (.handshake, [1, 2, 3])))
        #expect(garbage.rejected == [.init(.handshake, .malformedList)])
        #expect(
            garbage.description == "valid certificate timestamps (SCTs) from 1 log are required,"
                + " but the server has none; not counted: in the handshake a malformed list")
    }

    @Test func `retired logs count with what certificates have from before`() throws {
        let own = (TimestampSource.certificate, list(sct(4, at: 899), sct(1)))
        #expect(failure(2, own) == nil)
        #expect(failure(2, (.certificate, list(sct(1), sct(4, at: 899)))) == nil)
        #expect(
            failure(2, (.certificate, list(sct(1), sct(4, at: 900))))?.rejected
                == [.init(.certificate, .afterRetirement(log: "log 4", at: 900))])
        // Outside the certificate anybody may present what was signed last night.
        for source in [TimestampSource.handshake, .status] {
            let found = try #require(failure(2, (source, list(sct(1), sct(4, at: 899)))))
            #expect(found.rejected == [.init(source, .besideCertificate(log: "log 4"))])
            #expect(found.description.contains("which is retired"))
        }
    }

    @Test func `retired logs alone do not suffice`() throws {
        let both = (TimestampSource.certificate, list(sct(4, at: 899), sct(10, at: 899)))
        for minimum in [1, 2] {
            let found = try #require(failure(minimum, both))
            #expect(found.valid == 2 && found.rejected.isEmpty)
            #expect(found.description.contains(", all retired, and at least one must not be"))
            // One more that is not retired, wherever it is.
            #expect(failure(minimum, both, (.handshake, list(sct(1)))) == nil)
        }
    }

    @Test func `only those whose signature is checked are limited`() throws {
        let others =
            (0..<200).map { _ in sct(77) }
            + (0..<40).map { _ in sct(4, at: 950) } + [sct(1), sct(2)]
        var content: [UInt8] = []
        for one in others { content += [0, UInt8(one.count)] + one }
        let whole = [UInt8(content.count >> 8), UInt8(content.count & 255)] + content
        #expect(failure(2, (.certificate, whole)) == nil)
    }

    @Test func `so many are checked, and no more than are needed`() throws {
        var many: [UInt8] = []
        for _ in 0..<1000 {
            let one = sct(1, signature: [0])
            many += [0, UInt8(one.count)] + one
        }
        let whole = [UInt8(many.count >> 8), UInt8(many.count & 255)] + many
        var asked = 0
        let found = try #require(failure(1, (.handshake, whole)) { _ in asked += 1 })
        #expect(asked == TransparencyPolicy.maximumSignatures)
        #expect(found.ignored == 1000 - TransparencyPolicy.maximumSignatures)
        #expect(found.description.utf8.count < 1000)
        asked = 0
        #expect(failure(1, (.handshake, list(sct(1), sct(2), sct(3)))) { _ in asked += 1 } == nil)
        #expect(asked == 1)
    }
}
