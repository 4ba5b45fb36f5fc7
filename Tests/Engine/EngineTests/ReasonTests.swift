import CachePolicy
import Foundation
import HTTPCore
import PinfoldResolver
import PinfoldTLS
import TestSupport
import Testing
import Trust

@testable import PinfoldEngine

@Suite("Reasons")
struct ReasonTests {
    @Test func `every fault has one of the reasons, and every reason a fault`() {
        let reasons = Set(EveryExchangeError.all.map(\.reason))
        #expect(reasons.isSubset(of: Reason.allCases))
        #expect(Set(Reason.allCases).subtracting(reasons) == [])
    }

    @Test func `tokens are different and their indexes are the labels`() {
        #expect(Set(Reason.tokens).count == Reason.allCases.count)
        for (index, reason) in Reason.allCases.enumerated() {
            #expect(reason.index == index)
            #expect(Reason.tokens[index] == reason.token)
        }
    }

    @Test func `every token is lower case words with hyphens`() {
        // Dots are for version numbers.
        let allowed = Set("abcdefghijklmnopqrstuvwxyz0123456789-.")
        for token in Reason.tokens {
            #expect(!token.isEmpty && token.count <= 64)
            #expect(Set(token).isSubset(of: allowed), "\(token)")
        }
    }

    @Test func `every reason has a meaning and a remedy`() {
        for entry in Reason.allCases.map(\.entry) {
            #expect(!entry.meaning.isEmpty && !entry.meaning.hasSuffix("."), "\(entry.token)")
            #expect(entry.remedy.hasSuffix("."), "\(entry.token)")
        }
        for entry in NotStoredReason.allCases.map(\.entry) + ForwardReason.allCases.map(\.entry) {
            #expect(!entry.meaning.isEmpty && !entry.meaning.hasSuffix("."), "\(entry.token)")
        }
    }

    @Test func `the sides of a wire error are distinguished`() {
        for error in WireError.allCases {
            let request = Reason.request(error).token
            #expect(Reason.response(error).token == "upstream-\(request)")
        }
    }

    /// The tokens of ``EveryExchangeError/tlsErrors``, but for those of rules and of revocation.
    private static let tlsTokens = [
        "host-mismatch", "certificate-expired", "certificate-not-yet-valid", "self-signed",
        "untrusted-root", "incomplete-chain", "bad-signature", "wrong-purpose",
        "weak-cryptography", "constraint-violated", "malformed-certificate", "no-certificate",
        "invalid-chain", "no-pin-matches", "pinset-without-pins", "invalid-policy",
        "pinset-expired", "certificate-transparency", "alert-received",
        "client-certificate-required", "client-certificate-rejected", "version-refused",
        "not-tls", "not-tls", "unanswered", "unanswered", "truncated", "transport-error",
        "protocol-violation", "too-many-messages", "unauthenticated", "resources",
    ]

    /// They are in the dashboards and scripts of operators, so none may change.
    @Test func `every error of TLS has its token, and the page has all of them`() throws {
        let errors = EveryExchangeError.tlsErrors.filter {
            guard case .trust(let failure) = $0, case .chain(let chain) = failure.reason else {
                return true
            }
            return switch chain {
            case .rule, .revocation: false
            default: true
            }
        }
        let tokens = Self.tlsTokens.map { "tls-\($0)" }
        #expect(errors.map(\.reason.token) == tokens)
        let page = try Checkout.page("Reasons")
        for token in tokens + ["tls-timeout"] { #expect(page.contains("| `\(token)` |")) }
        #expect(ExchangeError.tlsTimeout.reason.token == "tls-timeout")
    }

    @Test func `a token is explained`() throws {
        let text = try #require(ReasonsPage.explanation(of: "tls-no-pin-matches"))
        #expect(text.contains("status 502"))
        #expect(text.contains("what to do: First find out"))
        // The cache's words for two questions are both explained.
        let method = try #require(ReasonsPage.explanation(of: "method"))
        #expect(method.contains("why the server was asked"))
        #expect(method.contains("why a response was not stored"))
        #expect(ReasonsPage.explanation(of: "no-such-token") == nil)
    }

    @Test func `every token is listed`() {
        let listed = Set(
            ReasonsPage.list.split(separator: "\n").compactMap {
                $0.split(separator: " ").first.map(String.init)
            })
        let tokens = Set(Reason.allCases.filter(\.canOccur).map(\.token))
        #expect(tokens.subtracting(listed) == [])
        #expect(Set(NotStoredReason.allCases.map { "\($0.token)" }).subtracting(listed) == [])
        #expect(Set(ForwardReason.allCases.map { "\($0.token)" }).subtracting(listed) == [])
    }

    @Test func `reasons of requests alone are not listed for responses and the reverse`() {
        let requestsOnly: [WireError] = [
            .malformedRequestLine, .methodTooLong, .targetTooLong, .malformedTarget, .hostMissing,
            .contentInConnect, .malformedMaxForwards, .unknownExpectation,
        ]
        let responsesOnly: [WireError] = [
            .malformedStatusLine, .mixedLineEnds, .unexpectedSwitch, .failedSwitch,
            .contentForbidden,
        ]
        let pages = [ReasonsPage.list, ReasonsPage.markdown]
        for page in pages {
            let words = Set(page.split { $0 == " " || $0 == "\n" || $0 == "`" }.map(String.init))
            for error in requestsOnly {
                #expect(words.contains("\(error.reason)"), "\(error)")
                #expect(!words.contains("upstream-\(error.reason)"), "\(error)")
            }
            for error in responsesOnly {
                #expect(words.contains("upstream-\(error.reason)"), "\(error)")
                #expect(!words.contains("\(error.reason)"), "\(error)")
            }
        }
        // What both sides can send is listed for both.
        for error in WireError.allCases {
            #expect(error.canOccur(from: .client) || error.canOccur(from: .upstream), "\(error)")
        }
        #expect(ReasonsPage.list.contains("  bare-line-feed "))
        #expect(ReasonsPage.list.contains("  upstream-bare-line-feed "))
    }

    @Test func `the documentation's page is generated from the enums`() throws {
        #expect(
            try Checkout.page("Reasons") == ReasonsPage.markdown,
            "stale: regenerate it with `pinfold reasons --markdown`")
    }
}
