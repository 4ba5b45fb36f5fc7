import HTTPCore
import Testing

@testable import EventLoop

@Suite("Sockets that listen")
struct ListeningSocketsTests {
    typealias Row = ListeningSockets.Row

    @Test(
        arguments: [
            ("0100007F:1F90", "127.0.0.1", 8080), ("00000000:0050", "0.0.0.0", 80),
            ("00000000000000000000000000000000:0050", "::", 80),
            ("00000000000000000000000001000000:01BB", "::1", 443),
            ("B80D0120000000000000000001000000:FFFF", "2001:db8::1", 65535),
            ("0000000000000000FFFF00000100007F:0050", "::ffff:127.0.0.1", 80),
        ] as [(String, String, UInt16)])
    func `a line names a socket that listens`(local: String, address: String, port: UInt16) throws {
        let rest = "00000000:00000000 00:00000000 00000000  1000        0 1234567 1 0 100 0 0 10 0"
        let row = try #require(Row("   3: \(local) 00000000:0000 0A \(rest)\n"))
        #expect(row.inode == 1_234_567)
        #expect(row.endpoint == Endpoint(address: try #require(IPAddress(address)), port: port))
    }

    @Test(
        arguments: [
            "", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid",
            // Connected, not listening.
            "0: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 0 0 1 1",
            "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0",
            "0: 0100007F 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1",
            "0: 01007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 x 1",
            "0: 0100007FFF:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1",
        ])
    func `other lines name none`(line: String) {
        #expect(Row(line) == nil)
    }

    @Test(
        arguments: [
            ("127.0.0.1", "127.0.0.1", true), ("127.0.0.1", "127.0.0.2", false),
            ("0.0.0.0", "127.0.0.1", true), ("127.0.0.1", "0.0.0.0", true),
            ("::", "::1", true), ("::1", "::", true), ("::1", "::1", true),
            ("2001:db8::1", "::1", false), ("::", "127.0.0.1", true), ("::", "0.0.0.0", true),
            ("::ffff:127.0.0.1", "127.0.0.1", true), ("::ffff:127.0.0.2", "127.0.0.1", false),
            ("0.0.0.0", "::", false), ("127.0.0.1", "::1", false), ("::1", "127.0.0.1", false),
        ])
    func `sockets meet on the same address or on all`(held: String, wanted: String, doOverlap: Bool)
        throws
    {
        let (held, wanted) = (try #require(IPAddress(held)), try #require(IPAddress(wanted)))
        let row = Row(endpoint: Endpoint(address: held, port: 80), inode: 1)
        #expect(row.overlaps(Endpoint(address: wanted, port: 80)) == doOverlap)
        #expect(!row.overlaps(Endpoint(address: wanted, port: 81)))
    }

    /// An address that no other test uses.
    private func endpoint(_ last: UInt32, port: UInt16 = 0) -> Endpoint {
        Endpoint(address: .v4(0x7F4D_0500 | last), port: port)
    }

    /// A listening socket at a port that the system assigns only on request.
    private func heldPort() throws -> (OwnedDescriptor, UInt16) {
        for _ in 0..<100 {
            let port = UInt16.random(in: 20_000..<32_000)
            guard ListeningSockets.inodes(at: Endpoint(address: .v4(0), port: port)) == [],
                let held = try? Sockets.listen(on: endpoint(1, port: port))
            else { continue }
            return (OwnedDescriptor(held), port)
        }
        throw Errno(code: 98)
    }

    @Test func `an address is free apart from one's own sockets`() throws {
        let (held, port) = try heldPort()
        let all = Endpoint(address: .v4(0), port: port)
        let inode = try #require(ListeningSockets.inode(of: held.fd))
        #expect(ListeningSockets.inodes(at: all) == [inode])
        #expect(ListeningSockets.inodes(at: endpoint(2, port: port)) == [])
        #expect(throws: Errno(code: 98)) { try Sockets.checkFree(all) }
        #expect(throws: Errno(code: 98)) { try Sockets.checkFree(all, apartFrom: [inode + 1]) }
        try Sockets.checkFree(all, apartFrom: [inode])
        let other = OwnedDescriptor(try Sockets.listen(on: endpoint(2, port: port)))
        #expect(throws: Errno(code: 98)) { try Sockets.checkFree(all, apartFrom: [inode]) }
        let otherInode = try #require(ListeningSockets.inode(of: other.fd))
        try Sockets.checkFree(all, apartFrom: [inode, otherInode])
    }
}
