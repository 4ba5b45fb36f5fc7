import Foundation
import Testing

@testable import Trust

/// No suffix at all.
private struct NoSuffixes: PublicSuffixes {
    func kind(of name: String) -> PublicSuffixKind { .none }
}

@Suite("The roots of the system's store")
struct SystemRootsTests {
    private static func roots() throws -> [CertificateFields] {
        let file = try String(
            contentsOfFile: "/etc/ssl/certs/ca-certificates.crt", encoding: .ascii)
        return try file.components(separatedBy: "-----BEGIN CERTIFICATE-----").dropFirst().map {
            let text = try #require($0.components(separatedBy: "-----END").first)
            let der = try #require(Data(base64Encoded: text, options: .ignoreUnknownCharacters))
            return try #require(CertificateFields(der: Array(der)))
        }
    }

    private func violation(_ root: CertificateFields, _ profile: AppliedProfile) -> RuleViolation? {
        // Only the root is checked against the rules, not what is below it.
        ChainRules(chain: [root, root], profile: profile, suffixes: NoSuffixes())
            .firstViolation(from: 1)
    }

    @Test func `strict accepts each of them as an anchor`() throws {
        let roots = try Self.roots()
        #expect(roots.count > 50)
        for root in roots {
            #expect(violation(root, AppliedProfile(.strict, hasSystemAnchor: true)) == nil)
        }
    }

    @Test func `pedantic refuses those that break a rule, which few do`() throws {
        let roots = try Self.roots()
        var counts: [CertificateRule: Int] = [:]
        for root in roots {
            guard let found = violation(root, AppliedProfile(.pedantic, hasSystemAnchor: true))
            else { continue }
            counts[found.rule, default: 0] += 1
        }
        #expect(counts[.weakSignature] != nil, "\(counts)")
        #expect(counts.values.reduce(0, +) * 2 < roots.count, "\(counts)")
    }
}
