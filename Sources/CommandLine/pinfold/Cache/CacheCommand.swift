import ArgumentParser
import Documents
import HTTPCore
import HTTPTypes

/// `pinfold cache`: what is stored, and what becomes of it.
struct CacheCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Look into the cache of the running gateway, purge it, and fill it.",
        discussion: """
            The commands ask the gateway at its administrative address; `sql` reads the cache's \
            files, whether or not a gateway runs, and `warm` sends requests through the gateway.
            """,
        subcommands: [
            CacheList.self, CacheShow.self, CachePurge.self, CacheStats.self, CacheWarm.self,
            CacheSQL.self, CacheExportCommand.self, CacheImportCommand.self,
        ])
}

extension RunningGateway {
    /// Asks, and exits with 2 if there is no answer, or with the status that is given for one that
    /// is an error.
    func value(
        _ method: HTTPRequest.Method, _ path: String, content: Content? = nil, failing: Int32 = 2
    ) throws -> DocumentValue {
        let answer: Answer
        do {
            answer = try ask(method, path, content: content)
        } catch {
            writeError("\(error)")
            throw ExitCode(2)
        }
        guard answer.status == 200, let value = answer.value else {
            writeError(answer.problem)
            throw ExitCode(answer.status == 401 || answer.status == 403 ? 2 : failing)
        }
        return value
    }
}

extension AdministrationOptions {
    /// The gateway; exits with 2 if the options name none.
    func gatewayOrExit(leastTimeout: Int64 = 0) throws -> RunningGateway {
        do {
            return try gateway(leastTimeout: leastTimeout)
        } catch {
            writeError("\(error)")
            throw ExitCode(2)
        }
    }
}

/// A value of a query, percent-encoded.
func queryEncoded(_ text: String) -> String {
    let bytes = PercentCoding.encode(text.utf8) {
        ASCII.isLetter($0) || ASCII.isDigit($0) || "-._~/:".utf8.contains($0)
    }
    return String(decoding: bytes, as: UTF8.self)
}
