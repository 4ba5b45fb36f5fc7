import HTTPCore
import Testing

@testable import PinfoldConfiguration

@Suite("Who may purge")
struct PurgeConfigurationTests {
    private func address(_ text: String) -> IPAddress? { IPAddress(text) }

    @Test func `nobody may if neither networks nor a token are given`() {
        #expect(!PurgeConfiguration().admits(address("127.0.0.1")))
    }

    @Test func `only clients of the networks may where these are given`() throws {
        var purge = PurgeConfiguration()
        purge.clients = [try IPNetwork(parsing: "10.0.0.0/8")]
        purge.token = BearerToken(path: "/t", bytes: [1])
        #expect(purge.admits(address("10.1.2.3")))
        #expect(purge.admits(address("::ffff:10.1.2.3")))
        #expect(!purge.admits(address("11.1.2.3")))
        #expect(!purge.admits(nil))
        #expect(!purge.admits(.unnamed))
        purge.clients = []
        #expect(!purge.admits(address("10.1.2.3")))
    }

    @Test func `clients without an address may only where that is said`() throws {
        var purge = PurgeConfiguration()
        purge.clients = [try IPNetwork(parsing: "0.0.0.0/0")]
        #expect(!purge.admits(.unnamed))
        purge.clients = [.unixClients]
        #expect(purge.admits(.unnamed))
        #expect(!purge.admits(address("127.0.0.1")))
    }
}

@Suite("A bearer token in a file")
struct BearerTokenTests {
    @Test func `white space around it does not count`() throws {
        let token = try BearerToken(path: "/t", content: Array(" \n\ts3cret\r\n".utf8))
        #expect(token == BearerToken(path: "/t", bytes: Array("s3cret".utf8)))
    }

    @Test(arguments: ["", " \n", "a b", "a\nb", "ä", "a\u{7F}"])
    func `another content is refused`(text: String) {
        #expect(throws: BearerTokenError.self) {
            try BearerToken(path: "/t", content: Array(text.utf8))
        }
    }

    @Test(arguments: [
        ("Bearer s3cret", true), ("bearer  s3cret", true), ("BEARER s3cret", true),
        ("Bearer s3cre", false), ("Bearer s3cret2", false), ("Bearer s3creT", false),
        ("Bearer", false), ("Bearer ", false), ("", false), ("Basic s3cret", false),
        ("s3cret", false), ("Bearers3cret", false), ("Bearer s3cret ", false),
    ])
    func `it is presented as Bearer, whole`(value: String, isRight: Bool) {
        let token = BearerToken(path: "/t", bytes: Array("s3cret".utf8))
        let isAccepted = token.isIn(Array(value.utf8).span)
        #expect(isAccepted == isRight)
    }

    @Test(arguments: [
        ("s3cret", true), ("s3cre", false), ("s3cret2", false), ("S3cret", false), ("", false),
        ("Bearer s3cret", false),
    ])
    func `it is presented as it is, whole`(value: String, isRight: Bool) {
        let token = BearerToken(path: "/t", bytes: Array("s3cret".utf8))
        let isAccepted = token.isEqual(to: Array(value.utf8).span)
        #expect(isAccepted == isRight)
    }
}
