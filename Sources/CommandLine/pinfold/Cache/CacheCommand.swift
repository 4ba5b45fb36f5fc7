import ArgumentParser
import CLinux
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

/// What is on disk cannot be said: the gateway's reason.
struct DiskUnreadableError: Error, Equatable {
    let problem: String

    /// `nil` if the answer says something else.
    init?(_ answer: RunningGateway.Answer) {
        let kinds = ["cache-disk-off", "cache-disk-opening", "cache-read-failed"]
        guard let kind = answer.problemKind, kinds.contains(kind) else { return nil }
        problem = answer.problem
    }
}

extension RunningGateway {
    /// Asks what is stored, again if the gateway cannot say it at this moment. Exits with 2 if
    /// there is no answer, or one that is another error.
    /// - Throws: `DiskUnreadableError` if what is on disk cannot be said.
    func look(_ path: String) throws -> Answer {
        var attempts = 0
        while true {
            let answer: Answer
            do {
                answer = try ask(.get, path)
            } catch {
                writeError("\(error)")
                throw ExitCode(2)
            }
            attempts += 1
            // Others look into the cache, or it is being opened.
            let isPassing = ["busy", "cache-disk-opening"].contains(answer.problemKind)
            if isPassing, attempts < Self.lookAttempts {
                usleep(1_000_000)
                continue
            }
            if answer.status == 200 { return answer }
            if let error = DiskUnreadableError(answer) { throw error }
            writeError(answer.problem)
            throw ExitCode(2)
        }
    }

    /// How often it is asked what is stored, once a second, while it cannot say.
    private static let lookAttempts = 30
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
