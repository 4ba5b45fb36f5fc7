import ArgumentParser
import Gateway
import HTTPCore
import HTTPTypes
import PinfoldClient

/// A URL as it is written on a command line.
enum CompletedURL {
    /// Adds `http://` where there is no scheme, as curl does: in front of `host`, `host/path` and
    /// `host:port`. Anything else is left as it is.
    static func text(_ url: String) -> String {
        let start = url.prefix { !":/?#".contains($0) }
        // One label without a dot is more likely a mistake, but for the name of this host.
        let isHost =
            (start.contains(".") || start == "localhost" || start.hasPrefix("["))
            && start.utf8.allSatisfy {
                // Names may be international.
                ASCII.isLetter($0) || ASCII.isDigit($0) || $0 >= 0x80 || ".-_[".utf8.contains($0)
            }
        guard isHost else { return url }
        let rest = url[start.endIndex...]
        // After a colon there is a port, or it ends a scheme.
        if rest.hasPrefix(":"), !start.hasPrefix("["),
            !(rest.dropFirst().first?.isNumber ?? false)
        {
            return url
        }
        return "http://" + url
    }
}

/// The argument of `--resolve`: `host:port:address[,address]…`, with `*` for every host. What curl
/// means by `+` in front, that a name's addresses expire, is true of none here.
struct ResolveArgument {
    let host: String
    let port: Int
    let addresses: [String]

    init(_ text: String) throws(ClientError) {
        var rest = text[...]
        if rest.hasPrefix("+") { rest.removeFirst() }
        if rest.hasPrefix("["), let end = rest.firstIndex(of: "]") {
            host = String(rest[...end])
            rest = rest[rest.index(after: end)...]
        } else {
            host = String(rest.prefix { $0 != ":" })
            rest = rest.dropFirst(host.count)
        }
        let parts = rest.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard !host.isEmpty, parts.count == 3, parts[0].isEmpty, let port = Int(parts[1]),
            !parts[2].isEmpty
        else {
            throw ClientError(
                .invalidConfiguration, "--resolve \(text): expected HOST:PORT:ADDRESS[,ADDRESS]")
        }
        self.port = port
        addresses = parts[2].split(separator: ",").map(String.init)
    }
}

/// The option `-d`, as curl has it.
struct FormDataOptions: ParsableArguments, ContentSource {
    @Option(
        name: [.customShort("d"), .customLong("form-data")],
        help: ArgumentHelp(
            "Send this text, or the contents of a file (@FILE) or of standard input (@-), as a "
                + "form (application/x-www-form-urlencoded); several are joined by &. With get, "
                + "the method is then POST.",
            valueName: "text|@file"))
    var data: [String] = []

    /// As with curl, line ends of files are left out.
    func content() throws -> (RequestContent?, HTTPFields) {
        guard !data.isEmpty else { return (nil, [:]) }
        var bytes: [UInt8] = []
        for (index, text) in data.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: "&")) }
            guard text.hasPrefix("@") else {
                bytes += text.utf8
                continue
            }
            bytes += try CommandContent.bytes(of: text, "-d").filter {
                $0 != 0x0A && $0 != 0x0D && $0 != 0
            }
        }
        return (.bytes(bytes), [.contentType: "application/x-www-form-urlencoded"])
    }
}

/// What an option's value of the form `@FILE` or `@-` names.
enum CommandContent {
    /// The content of a file, or of standard input.
    ///
    /// - Throws: ``ClientCommandError`` with ``ClientExit/content``.
    static func bytes(of argument: String, _ option: String) throws -> [UInt8] {
        let path = String(argument.dropFirst())
        guard path == "-" else {
            do { return try CommandFiles.read(path) } catch {
                throw ClientCommandError(.content, "\(option) \(argument): \(error)")
            }
        }
        return try standardInput()
    }

    /// All of standard input.
    static func standardInput() throws(ClientCommandError) -> [UInt8] {
        var bytes: [UInt8] = []
        do throws(InputError) {
            while case let more = try readInput(), !more.isEmpty { bytes += more }
        } catch {
            throw ClientCommandError(.content, "\(error)")
        }
        return bytes
    }
}
