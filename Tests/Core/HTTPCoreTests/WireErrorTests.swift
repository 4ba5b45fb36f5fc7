import HTTPCore
import Testing

@Suite("Errors on the wire")
struct WireErrorTests {
    @Test func `every reason has a status that refuses, and 502 when an upstream is at fault`() {
        for error in WireError.allCases {
            #expect([400, 413, 414, 417, 431, 501, 505].contains(error.status), "\(error)")
            #expect(error.status(from: .client) == error.status)
            #expect(error.status(from: .upstream) == 502)
            #expect(!StatusPhrase.of(error.status).description.isEmpty)
        }
    }

    @Test func `the statuses other than 400 are those that the RFCs name`() {
        let others = WireError.allCases.filter { $0.status != 400 }
        let expected: [WireError: UInt16] = [
            .contentLengthTooLarge: 413, .chunkTooLarge: 413, .chunkExtensionsTooLarge: 413,
            .targetTooLong: 414, .unknownExpectation: 417, .headTooLarge: 431,
            .tooManyFields: 431, .trailersTooLarge: 431, .tooManyTrailers: 431,
            .methodTooLong: 501, .unknownTransferCoding: 501, .unsupportedVersion: 505,
        ]
        #expect(Dictionary(uniqueKeysWithValues: others.map { ($0, $0.status) }) == expected)
    }

    @Test func `reasons are distinct tokens and explanations are sentences`() {
        let reasons = WireError.allCases.map { $0.reason.description }
        #expect(Set(reasons).count == reasons.count)
        for error in WireError.allCases {
            #expect(error.reason.description.utf8.allSatisfy(ByteClass.isToken))
            #expect(error.explanation.description.count > error.reason.description.count / 2)
            #expect(!error.explanation.description.hasSuffix("."))
        }
    }
}
