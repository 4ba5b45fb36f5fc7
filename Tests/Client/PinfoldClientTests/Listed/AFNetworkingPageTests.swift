import Testing

@Suite("The page on AFNetworking's behaviours")
struct AFNetworkingPageTests {
    @Test func `names a test for each of them, and only existing tests`() throws {
        let tables = try TestTables(of: "AFNetworking")
        #expect(tables.rows.count > 55)
        for row in tables.rows {
            #expect(!row.tests.isEmpty, "\(row.feature)")
            for (place, test) in row.tests {
                #expect(tables.has(test, in: place), "\(place): \(test)")
            }
        }
    }
}
