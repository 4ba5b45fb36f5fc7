import HTTPCore
import PinfoldConfiguration
import TestSupport
import Testing

@testable import Gateway

@Suite("cache.purge")
struct PurgeKeyTests {
    @Test func `without it nobody purges by a method`() throws {
        #expect(try load("cache: {}").cache.purge == nil)
    }

    @Test func `networks and a token are read`() throws {
        try withTemporaryFolder { folder in
            try write("s3cret\n", to: "token", in: folder)
            let purge = try load(
                "cache: { purge: { clients: [127.0.0.1, 10.0.0.0/8, unix], tokenFile: token } }",
                folder: folder + "/"
            ).cache.purge
            #expect(purge?.clients?.count == 3)
            #expect(purge?.clients?.last == .unixClients)
            #expect(purge?.token?.bytes == Array("s3cret".utf8))
        }
    }

    @Test(arguments: ["{}", "{ clients: [] }"])
    func `it must say who may`(text: String) {
        #expect(
            errors(of: "cache: { purge: \(text) }") == [
                "gateway.yaml:1: cache.purge: says nobody who may purge; expected clients with at "
                    + "least one network, or tokenFile, or both"
            ])
    }

    @Test func `a file without a token is refused`() throws {
        try withTemporaryFolder { folder in
            try write("\n", to: "token", in: folder)
            let found = errors(
                of: "cache: { purge: { tokenFile: token } }", folder: folder + "/")
            #expect(found.count == 1)
            #expect(found.first?.contains("cache.purge.tokenFile") ?? false)
            #expect(found.first?.contains("is empty") ?? false)
        }
    }

    @Test func `the file is read again when it changes`() throws {
        try withTemporaryFolder { folder in
            try write("one", to: "token", in: folder)
            let snapshot = try load(
                "cache: { purge: { tokenFile: token } }", folder: folder + "/")
            #expect(snapshot.watchedFiles == [["\(folder)/token"]])
            try write("two", to: "token", in: folder)
            let refreshed = snapshot.refreshed(reading: ["\(folder)/token"], at: 0)
            #expect(refreshed.snapshot.cache.purge?.token?.bytes == Array("two".utf8))
            try write("", to: "token", in: folder)
            let unusable = refreshed.snapshot.refreshed(reading: ["\(folder)/token"], at: 0)
            #expect(unusable.snapshot == refreshed.snapshot)
            #expect(unusable.problems.count == 1)
        }
    }

    @Test func `a change of it needs no restart`() throws {
        let before = try load("cache: {}").cache
        let after = try load("cache: { purge: { clients: [127.0.0.1] } }").cache
        #expect(after.hasSameStore(as: before))
        #expect(after != before)
    }
}
