import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("The limits of one client")
struct ClientAccountsTests {
    private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.2", false),
        ("192.0.2.1", "::ffff:192.0.2.1", true),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
    ])
    func `a client is an IPv4 address or an IPv6 network of 64 bits`(
        one: String, other: String, isSame: Bool
    ) throws {
        let accounts = ClientAccounts()
        let first = try #require(accounts.open(try address(one), limit: 2))
        let second = try #require(accounts.open(try address(other), limit: 2))
        #expect((first === second) == isSame)
        #expect(accounts.count == (isSame ? 1 : 2))
        #expect(first.openConnections == (isSame ? 2 : 1))
    }

    @Test func `one connection beyond the limit is refused and a closed one makes room`() throws {
        let accounts = ClientAccounts()
        let client = try address("192.0.2.1")
        let account = try #require(accounts.open(client, limit: 2))
        #expect(accounts.open(client, limit: 2) != nil)
        #expect(accounts.open(client, limit: 2) == nil)
        #expect(accounts.open(try address("192.0.2.2"), limit: 2) != nil)
        accounts.close(account)
        #expect(accounts.open(client, limit: 2) === account)
    }

    @Test func `what a sender of headers names clients for is not counted as its own`() throws {
        let accounts = ClientAccounts()
        let sender = try address("192.0.2.1")
        let awaiting = try (0..<9).map { _ in
            try #require(accounts.open(sender, limit: 9, awaitsHeader: true))
        }
        #expect(accounts.open(sender, limit: 9, awaitsHeader: true) == nil)
        let own = try #require(accounts.open(sender, limit: 1))
        #expect(accounts.open(sender, limit: 1) == nil)
        #expect(own !== awaiting[0] && own.network == awaiting[0].network)
        #expect(awaiting[0].isOfHeaders && !own.isOfHeaders)
        #expect(accounts.account(of: sender) === own)
        #expect(accounts.account(of: sender, awaitsHeader: true) === awaiting[0])
        accounts.close(awaiting[0])
        #expect(awaiting[0].openConnections == 8 && own.openConnections == 1)
        accounts.close(own)
        #expect(accounts.account(of: sender) == nil)
        #expect(accounts.count == 1)
    }

    @Test func `a client without connections is forgotten`() throws {
        let accounts = ClientAccounts()
        let account = try #require(accounts.open(try address("192.0.2.1"), limit: 2))
        accounts.close(account)
        #expect(accounts.count == 0)
        #expect(accounts.account(of: account.network.address) == nil)
    }

    @Test func `exchanges are counted up to the limit`() throws {
        let account = try #require(
            ClientAccounts().open(try address("192.0.2.1"), limit: 1))
        #expect(account.beginExchange(limit: 2))
        #expect(account.beginExchange(limit: 2))
        #expect(!account.beginExchange(limit: 2))
        account.endExchange()
        #expect(account.beginExchange(limit: 2))
    }

    @Test func `refusals are logged once in a while`() throws {
        let account = try #require(
            ClientAccounts().open(try address("192.0.2.1"), limit: 1))
        #expect(account.mayLog(now: 5, every: 100))
        #expect(!account.mayLog(now: 104, every: 100))
        #expect(account.mayLog(now: 105, every: 100))
    }
}
