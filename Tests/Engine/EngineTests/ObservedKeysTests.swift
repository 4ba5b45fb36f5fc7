import EngineTestSupport
import Testing
import Trust

@testable import PinfoldEngine

@Suite("Pins of a past server")
struct ObservedKeysTests {
    private static func digest(_ byte: UInt8) throws -> SHA256Digest {
        let bytes = Array(repeating: byte, count: SHA256Digest.byteCount)
        let digest = SHA256Digest(bytes.span)
        return try #require(digest)
    }

    /// A path of certificates, each by a number for its key; a fingerprint has 100 more.
    private func path(
        _ keys: [UInt8], hasFingerprints: Bool
    ) throws -> [ObservedKeys.Certificate] {
        try keys.map { key in
            ObservedKeys.Certificate(
                key: try Self.digest(key),
                fingerprint: hasFingerprints ? try Self.digest(key + 100) : nil)
        }
    }

    private func verdict(
        _ pinset: String, _ paths: [[UInt8]], hasFingerprints: Bool = false
    ) throws -> String {
        let configuration = try testConfiguration(
            """
            hosts: [{ match: [a.test], pinsets: [p], upgrade: https }]
            pinsets: { p: { \(pinset) } }
            """)
        let observed = try #require(
            ObservedKeys(paths.map { try path($0, hasFingerprints: hasFingerprints) }))
        let judge = ObservedKeysJudge(configuration)
        switch try judge.judge(observed, entry: 0, host: "a.test", now: 1_800_000_000) {
        case .passes: return "passes"
        case .reported(let error): return "reported by \(error.pinset ?? "")"
        case .refused(let error): return "refused by \(error.pinset ?? "")"
        case .unknown: return "unknown"
        }
    }

    private func pin(key byte: UInt8) throws -> String { try Self.digest(byte).keyPinText }

    @Test func `are matched on every path to a root, and on each of its certificates`() throws {
        let pins = "mode: publicKey, pins: [\"\(try pin(key: 3))\", \"\(try pin(key: 9))\"]"
        #expect(try verdict(pins, [[3, 4]]) == "passes")
        #expect(try verdict(pins, [[1, 2, 3]]) == "passes")
        #expect(try verdict(pins, [[1, 2], [1, 4, 3]]) == "passes")
        #expect(try verdict(pins, [[1, 2], [1, 4, 5]]) == "refused by p")
        #expect(try verdict("enforce: false, " + pins, [[1, 2]]) == "reported by p")
    }

    @Test func `need fingerprints where certificates are pinned by theirs`() throws {
        let print = try Self.digest(103).fingerprintText
        let pins = "mode: publicKey, pins: [\"\(print)\", \"\(try pin(key: 9))\"]"
        #expect(try verdict(pins, [[1, 3]]) == "unknown")
        #expect(try verdict(pins, [[1, 3]], hasFingerprints: true) == "passes")
        #expect(try verdict(pins, [[1, 2]], hasFingerprints: true) == "refused by p")
        // A key that matches says enough.
        #expect(try verdict(pins, [[1, 9]]) == "passes")
    }

    @Test func `are not judged where chains are built to pinned certificates`() throws {
        let pins = "mode: certificate, pins: [\"\(try Self.digest(103).fingerprintText)\"]"
        #expect(try verdict(pins, [[1, 3]], hasFingerprints: true) == "unknown")
        #expect(try verdict("mode: none", [[1, 2]]) == "passes")
    }

    @Test func `are of a server that has shown something`() throws {
        #expect(ObservedKeys([]) == nil)
        #expect(ObservedKeys([[], []]) == nil)
    }
}
