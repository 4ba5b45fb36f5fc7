import Testing

@testable import pinfold

@Suite("The authorities of a log")
struct AuthorityTableTests {
    private func bytes(_ text: String) -> ArraySlice<UInt8> { Array(text.utf8)[...] }

    @Test func `are read by the scheme that they have or are asked for by`() {
        var table = AuthorityTable()
        // The second time from memory.
        for _ in 0..<2 {
            let tunnel = table.authority(bytes("A.test:444"), .https)
            #expect(tunnel?.host == "a.test" && tunnel?.port == 444 && tunnel?.isSecure == true)
            let clear = table.authority(bytes("A.test:444"), .http)
            #expect(clear?.host == "a.test" && clear?.port == 444 && clear?.isSecure == false)
            let own = table.authority(bytes("https://[::1]"), .own)
            #expect(own?.host == "::1" && own?.port == 443 && own?.isSecure == true)
            #expect(table.authority(bytes("a.test"), .own) == nil)
        }
        #expect(table.count == 4)
    }

    @Test func `are forgotten at a bound on their bytes`() {
        var table = AuthorityTable()
        // None is a host, which has 253 bytes at most.
        let long = String(repeating: "a", count: 16_000)
        var most = 0
        for number in 0..<600 {
            #expect(table.authority(bytes(long + "\(number)"), .http) == nil)
            most = max(most, table.byteCount)
        }
        #expect(most <= AuthorityTable.maximumBytes)
        #expect(most > AuthorityTable.maximumBytes - 17_000)
        #expect(table.count < 600)
        let before = table.count
        #expect(table.authority(bytes(long + long), .http) == nil)
        #expect(table.count == before)
    }

    @Test func `are forgotten at a bound on their number`() {
        var table = AuthorityTable()
        for number in 0...AuthorityTable.maximumCount {
            #expect(table.authority(bytes("h\(number).test"), .http)?.port == 80)
        }
        #expect(table.count == 1)
        #expect(table.byteCount == "h\(AuthorityTable.maximumCount).test".utf8.count)
    }
}
