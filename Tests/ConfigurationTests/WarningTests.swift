import Testing

@testable import Configuration

/// What is valid and yet probably not meant.
@Suite struct WarningTests {
    @Test func theDefaultsGiveNone() throws {
        #expect(try warnings(of: "{}") == [])
    }

    @Test func aPinsetThatNoEntryUses() throws {
        let text = """
            hosts:
              - match: [a.example.com]
                upgrade: https
                pinsets: [used]
            pinsets:
              used: { mode: none }
              forgotten: { mode: none }
            """
        #expect(
            try warnings(of: text) == [
                "gateway.yaml:7: pinsets.forgotten: no entry of hosts uses this pinset, so it "
                    + "protects nothing; name it in the pinsets of the entry that it is for"
            ])
    }
}
