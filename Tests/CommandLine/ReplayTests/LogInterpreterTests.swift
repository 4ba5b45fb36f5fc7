import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import Testing

@testable import pinfold

@Suite("The request of a line")
struct LogInterpreterTests {
    private static let common =
        #""time":"2026-11-30T00:00:00.000Z","client":"192.0.2.1:4000","listener":"proxy","#

    private func reading(_ text: String) -> LineReading {
        var line = LogLine()
        var interpreter = LogInterpreter([])
        let isLine = text.utf8CString.withUnsafeBytes {
            line.read(UnsafeRawBufferPointer(rebasing: $0.dropLast()))
        }
        return isLine ? interpreter.interpret(line) : .unreadable
    }

    private func requested(_ rest: String) -> PastRequest? {
        guard case .request(let logged) = reading("{" + Self.common + rest + "}") else {
            return nil
        }
        return logged.request
    }

    @Test(arguments: [
        (#""method":"CONNECT","target":"A.test:443""#, PastRequest.Form.tunnel, "a.test", 443, ""),
        (#""method":"CONNECT","target":"[2001:db8::1]:8443""#, .tunnel, "2001:db8::1", 8443, ""),
        (
            #""method":"GET","target":"http://a.test/x?y""#, .named(isSecure: false), "a.test", 80,
            "/x?y"
        ),
        (#""method":"GET","target":"https://a.test""#, .named(isSecure: true), "a.test", 443, ""),
        (
            #""method":"GET","target":"/x","tunnel":"a.test:8443""#, .inTunnel, "a.test", 8443,
            "/x"
        ),
        (
            #""method":"GET","target":"/x","authority":"a.test:81""#, .named(isSecure: false),
            "a.test", 81, "/x"
        ),
        (#""method":"POST","target":"/x""#, .path, "", 0, "/x"),
    ])
    func `is for a host and port`(
        rest: String, form: PastRequest.Form, host: String, port: Int, target: String
    ) throws {
        let request = try #require(requested(rest))
        #expect(request.form == form)
        #expect(request.host == host)
        #expect(Int(request.port) == port)
        #expect(String(decoding: request.target, as: UTF8.self) == target)
        #expect(request.client == IPAddress("192.0.2.1"))
        #expect(request.seconds == 1_795_996_800)
    }

    @Test func `has the address that was connected to, but not that of a proxy`() throws {
        let get = #""method":"GET","target":"http://a.test/","upstream":"[::1]:80""#
        #expect(try #require(requested(get)).address == IPAddress("::1"))
        #expect(try #require(requested(get + #","parent":"corporate""#)).address == nil)
    }

    @Test(arguments: [
        (#""method":"GET","target":"*""#, "its target names no host"),
        (
            #""method":"GET","target":"/","reason":"misdirected-request""#,
            "decided by what is not in the log: misdirected-request"
        ),
    ])
    func `may be undecided`(rest: String, reason: String) {
        guard case .undecided(let why) = reading("{" + Self.common + rest + "}") else {
            Issue.record("it is decided")
            return
        }
        #expect(why == reason)
    }
}
