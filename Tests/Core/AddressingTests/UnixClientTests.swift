import HTTPCore
import Testing

@Suite("Clients without an address")
struct UnixClientTests {
    @Test(arguments: ["0.0.0.0/0", "0.0.0.0/8", "::/0", "127.0.0.0/8", "0.0.0.0/31"])
    func `are in no network of addresses`(text: String) throws {
        let network = try #require(IPNetwork(text))
        #expect(!network.contains(client: .unnamed))
    }

    @Test func `are in a network of their own, which has no other client`() throws {
        #expect(IPNetwork.unixClients.contains(client: .unnamed))
        for text in ["127.0.0.1", "0.0.0.1", "::", "::1"] {
            #expect(!IPNetwork.unixClients.contains(client: try #require(IPAddress(text))))
        }
    }

    @Test(arguments: ["10.0.0.0/8", "::/0", "2001:db8::1", "0.0.0.0/0"])
    func `change nothing about the networks of others`(text: String) throws {
        let network = try #require(IPNetwork(text))
        for client in ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1", "192.0.2.1", "::1"] {
            let address = try #require(IPAddress(client))
            #expect(network.contains(client: address) == network.contains(address))
        }
    }

    @Test func `are counted as one`() {
        #expect(IPNetwork(client: .unnamed) == .unixClients)
    }

    @Test func `have a word in place of an address`() {
        #expect(String(Endpoint.unnamed.clientText) == "unix")
        #expect(String(IPAddress.unnamed.clientText) == "unix")
        #expect(IPNetwork.unixClients.clientDescription == "unix")
        #expect(IPNetwork(.loopbackV4).clientDescription == "127.0.0.1/32")
        #expect(
            String(Endpoint(address: .loopbackV4, port: 1).clientText) == "127.0.0.1:1")
    }
}
