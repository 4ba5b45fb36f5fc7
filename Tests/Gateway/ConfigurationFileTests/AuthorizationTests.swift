import Foundation
import PinfoldConfiguration
import Testing

@testable import Gateway

/// A configuration with credentials for a host that is reached over TLS.
private func text(_ authorization: String) -> String {
    """
    hosts:
      - match: [a.test]
        upgrade: https
        tunnel: refuse
        request:
          authorization: \(authorization)
    """
}

private let place = "gateway.yaml:6: hosts[0].request.authorization"

private func writeSecret(_ bytes: [UInt8], in folder: String, mode: Int = 0o600) throws {
    let path = folder + "/secret"
    #expect(FileManager.default.createFile(atPath: path, contents: Data(bytes)))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
}

@Suite("Credentials that the gateway adds")
struct AuthorizationTests {
    @Test(arguments: [
        ("open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("open sesame\n", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("open sesame\r\n", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("open sesame\nanother line", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("a:b", "Basic QWxhZGRpbjphOmI="),
        ("£", "Basic QWxhZGRpbjrCow=="),
    ])
    func `a password is the first line of a file`(content: String, value: String) throws {
        try withTemporaryFolder { folder in
            try writeSecret(Array(content.utf8), in: folder)
            let snapshot = try load(
                text("{ basic: { user: Aladdin, passwordFile: secret } }"), folder: folder)
            let authorization = try #require(snapshot.hosts.entries[0].request.authorization)
            #expect(authorization.fieldValue.text == value)
            #expect(!authorization.allowsClearText)
            let source = SecretSource.file(folder + "/secret")
            #expect(authorization.scheme == .basic(user: "Aladdin", source))
        }
    }

    @Test func `a token is in a file or an environment variable`() throws {
        try withTemporaryFolder { folder in
            try writeSecret(Array("mF_9.B5f-4.1JqM\n".utf8), in: folder)
            let ofFile = try load(
                text("{ bearer: { tokenFile: secret }, clearText: refuse }"), folder: folder)
            let ofVariable = try load(
                text("{ bearer: { tokenVariable: API_TOKEN } }"),
                environment: environment(with: ["API_TOKEN": "mF_9.B5f-4.1JqM"]))
            for snapshot in [ofFile, ofVariable] {
                let authorization = snapshot.hosts.entries[0].request.authorization
                #expect(authorization?.fieldValue.text == "Bearer mF_9.B5f-4.1JqM")
            }
        }
    }

    @Test func `an empty user and a variable for the password are possible`() throws {
        let snapshot = try load(
            text("{ basic: { user: '', passwordVariable: _p1 } }"),
            environment: environment(with: ["_p1": "x"]))
        let authorization = try #require(snapshot.hosts.entries[0].request.authorization)
        #expect(authorization.fieldValue.text == "Basic Ong=")
        #expect(authorization.scheme == .basic(user: "", .variable("_p1")))
    }

    @Test func `the printed configuration names the source of a secret and never shows it`() throws
    {
        try withTemporaryFolder { folder in
            try writeSecret(Array("s3cret".utf8), in: folder)
            let surroundings = environment(with: ["TOKEN": "t0ken"])
            for (written, shown) in [
                (
                    "{ basic: { user: 'a b', passwordFile: secret } }",
                    "authorization: { basic: { user: \"a b\", passwordFile: "
                        + "\"\(folder)/secret\" }, clearText: refuse }"
                ),
                (
                    "{ bearer: { tokenVariable: TOKEN } }",
                    "authorization: { bearer: { tokenVariable: \"TOKEN\" }, clearText: refuse }"
                ),
            ] {
                let snapshot = try load(text(written), folder: folder, environment: surroundings)
                let printed = snapshot.effectiveYAML()
                #expect(printed.contains(shown))
                let again = try load(printed, folder: "/elsewhere", environment: surroundings)
                #expect(again == snapshot)
                let value = try #require(
                    snapshot.hosts.entries[0].request.authorization?.fieldValue)
                for text in [printed, "\(snapshot)", "\(value)", "\([value])"] {
                    #expect(!text.contains("s3cret") && !text.contains("t0ken"))
                    #expect(!text.contains(value.text.split(separator: " ")[1]))
                }
            }
        }
    }

    @Test(arguments: [
        ("{}", ": has no credentials; expected one of basic, bearer"),
        (
            "{ basic: { user: a, passwordVariable: P }, bearer: { tokenVariable: P } }",
            ": has both basic and bearer; expected one of basic, bearer"
        ),
        (
            "{ basic: { passwordVariable: P } }",
            ".basic.user: is missing; expected a user name, '' for none"
        ),
        (
            "{ basic: { user: 'a:b', passwordVariable: P } }",
            ".basic.user: \"a:b\" is not valid; expected at most 256 bytes without colons or "
                + "control characters"
        ),
        (
            "{ basic: { user: \"a\\nb\", passwordVariable: P } }",
            ".basic.user: \"a\\n" + "b\" is not valid; expected at most 256 bytes without colons "
                + "or control characters"
        ),
        (
            "{ basic: { user: a } }",
            ".basic: has no password; expected one of passwordFile, passwordVariable"
        ),
        (
            "{ bearer: }", ".bearer: has no token; expected one of tokenFile, tokenVariable"
        ),
        (
            "{ bearer: { tokenFile: a, tokenVariable: P } }",
            ".bearer: has two sources for the token; expected one of tokenFile, tokenVariable"
        ),
        (
            "{ bearer: { tokenVariable: NONE } }",
            ".bearer.tokenVariable: the environment variable \"NONE\" is not set; "
                + "expected a variable in the gateway's environment"
        ),
        (
            "{ bearer: { tokenVariable: 1P } }",
            ".bearer.tokenVariable: \"1P\" is not valid; expected the name of an environment "
                + "variable: letters, digits and `_`"
        ),
        (
            "{ bearer: { tokenVariable: EMPTY } }",
            ".bearer.tokenVariable: the environment variable \"EMPTY\" is empty; "
                + "expected a secret in its first line"
        ),
        (
            "{ bearer: { tokenFile: none } }",
            ".bearer.tokenFile: \"/srv/none\" cannot be read: No such file or directory; "
                + "expected a readable file"
        ),
        (
            "{ bearer: { tokenVariable: P }, clearText: true }",
            ".clearText: \"true\" is not valid; expected one of allow, refuse"
        ),
        (
            "{ digest: {} }",
            ".digest: unknown key; expected one of basic, bearer, "
                + "clearText"
        ),
    ])
    func `wrong credentials are reported`(authorization: String, line: String) {
        let found = errors(
            of: text(authorization), environment: environment(with: ["P": "secret", "EMPTY": ""]))
        #expect(found.first == place + line)
        #expect(!found.joined().contains("secret\""))
    }

    @Test(
        arguments: [
            ([], "is empty; expected a secret in its first line"),
            ([0x0A, 0x61], "is empty; expected a secret in its first line"),
            ([0x0D, 0x0A], "is empty; expected a secret in its first line"),
            (
                Array(repeating: 0x61, count: 8193),
                "has a first line of 8193 bytes; expected at most 8192"
            ),
        ] as [([UInt8], String)])
    func `a file without a usable first line is refused`(content: [UInt8], line: String) throws {
        try withTemporaryFolder { folder in
            try writeSecret(content, in: folder)
            for (credentials, key) in [
                ("{ basic: { user: a, passwordFile: secret } }", "basic.passwordFile"),
                ("{ bearer: { tokenFile: secret } }", "bearer.tokenFile"),
            ] {
                #expect(
                    errors(of: text(credentials), folder: folder) == [
                        "\(place).\(key): \"\(folder)/secret\" \(line)"
                    ])
            }
        }
    }

    @Test(arguments: [
        Array("a b".utf8), Array("ä".utf8), Array("a\tb".utf8), Array("a\rb".utf8), [0x61, 0],
        [0x61, 0x0D],
    ])
    func `a token of anything but visible characters is refused`(content: [UInt8]) throws {
        try withTemporaryFolder { folder in
            try writeSecret(content, in: folder)
            #expect(
                errors(of: text("{ bearer: { tokenFile: secret } }"), folder: folder) == [
                    "\(place).bearer.tokenFile: \"\(folder)/secret\" has no valid token; "
                        + "expected a token of visible ASCII characters in its first line"
                ])
        }
    }

    @Test(
        arguments: [[0x61, 0x09], [0x61, 0x7F], [0xFF], [0x61, 0], [0x61, 0x0D]] as [[UInt8]])
    func `a password with control characters or in another encoding is refused`(
        content: [UInt8]
    ) throws {
        try withTemporaryFolder { folder in
            try writeSecret(content, in: folder)
            let found = errors(
                of: text("{ basic: { user: a, passwordFile: secret } }"), folder: folder)
            #expect(
                found == [
                    "\(place).basic.passwordFile: \"\(folder)/secret\" has no valid password; "
                        + "expected UTF-8 text without control characters in its first line"
                ])
        }
    }

    @Test func `a secret that others may read causes a warning`() throws {
        try withTemporaryFolder { folder in
            for (mode, isWarned) in [(0o600, false), (0o640, false), (0o644, true)] {
                try writeSecret(Array("token".utf8), in: folder, mode: mode)
                let found = try warnings(
                    of: text("{ bearer: { tokenFile: secret } }"), folder: folder + "/")
                #expect(found.count == (isWarned ? 1 : 0))
                guard isWarned else { continue }
                #expect(
                    found.first?.hasSuffix(
                        "is accessible to users other than its owner and group (mode 0644); "
                            + "protect it with chmod 640") == true)
            }
        }
    }

    @Test func `the process's environment variables are available`() throws {
        let environment = ConfigurationEnvironment.ofProcess()
        let path = ProcessInfo.processInfo.environment["PATH"]
        #expect(environment.variables["PATH"] == path.map { Array($0.utf8) })
        #expect(environment.variables["PINFOLD_NOT_SET_ANYWHERE"] == nil)
    }
}
