import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Requests with fields that may change the response stay out of the cache")
struct BypassFieldsTests {
    private let names = ["x-forwarded-host", "x-host", "x-http-method-override", "forwarded"]

    private func occurs(_ fields: [String], names: [String]? = nil, except keyed: [String] = [])
        -> Bool
    {
        let request = Request(fields)
        return BypassFields(names ?? self.names, except: keyed)
            .occur(in: request.head.fields, of: request.bytes.span)
    }

    @Test(
        arguments: [
            "X-Forwarded-Host: a", "x-forwarded-host: a", "X_Forwarded_Host: a",
            "X-FORWARDED_HOST:",
            "X-Host: a", "x_host: b", "X-HTTP-Method-Override: PUT", "X_Http_Method-Override: PUT",
            "Forwarded: host=a", "FORWARDED: for=b",
        ])
    func `names count in any letter case, and with _ for -`(field: String) {
        #expect(occurs([field]))
        #expect(occurs(["Accept: */*", "X-Other: 1", field, "Sec-Fetch-Site: none"]))
    }

    @Test(
        arguments: [
            "X-Forwarded-For: a", "X-Hosts: a", "X-Hos: a", "Y-Host: a", "X-HTTP-Method: a",
            "XHost: a", "X.Host: a", "X-Requested-With: x", "Cookie: a=b", "Via: 1.1 x",
        ])
    func `no other name counts`(field: String) {
        #expect(!occurs([field]))
    }

    @Test func `a name that is part of the key may occur`() {
        #expect(!occurs(["X-Host: a"], except: ["x-host"]))
        #expect(occurs(["X-Host: a", "X-Forwarded-Host: b"], except: ["x-host"]))
        #expect(!occurs(["Forwarded: for=b"], except: ["forwarded"]))
    }

    @Test func `names with and without an identity of their own may be chosen`() {
        #expect(occurs(["Cookie: a"], names: ["cookie"]))
        #expect(occurs(["X-Mine: a"], names: ["x-mine"]))
        #expect(!occurs(["X-Host: a"], names: ["x-mine", "cookie"]))
        #expect(!occurs(["X-Host: a"], names: []))
    }

    @Test func `what Connection names does not reach the origin`() {
        #expect(!occurs(["Connection: x-host", "X-Host: a"]))
        #expect(
            occurs(["Connection: x-forwarded-host", "X-Forwarded-Host: a"]),
            "this one may not be nominated")
    }

    @Test func `names that share a bit of the sketch are distinguished`() {
        // Names of one length with every last letter: most of them share a bit.
        for last in "abcdefghijklmnopqrstuvwxyz" where last != "t" {
            #expect(!occurs(["X-Hos\(last): a"]))
        }
    }
}
