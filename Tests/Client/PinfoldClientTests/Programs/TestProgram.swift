import CLinux
import TestSupport
import Testing

/// A program that a test starts, and whose output it reads line by line.
final class TestProgram: Sendable {
    /// The Python interpreter of the environment created by `deploy/venv`, or `nil` if there is
    /// none.
    static let python: String? = {
        let path = Checkout.root.path + "/.build-venv/bin/python"
        return access(path, X_OK) == 0 ? path : nil
    }()

    /// For Python: this thread may block the signal that ends the program.
    static let hearsSignals = """
        import signal
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        """

    private let process: pid_t
    private nonisolated(unsafe) let output: UnsafeMutablePointer<FILE>

    /// - Parameter command: The shell command; its errors are among the lines.
    init(_ command: String) throws {
        let output = try #require(popen("echo $$; exec \(command) 2>&1", "r"))
        self.output = output
        process = try #require(Self.line(of: output).flatMap { pid_t($0) })
    }

    /// Returns the next line, or `nil` when the program has ended.
    func line() -> String? { Self.line(of: output) }

    private static func line(of file: UnsafeMutablePointer<FILE>) -> String? {
        var bytes = [CChar](repeating: 0, count: 4096)
        guard fgets(&bytes, Int32(bytes.count), file) != nil else { return nil }
        return bytes.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
            .split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
    }

    /// Ends the program, and waits for its end.
    func close() {
        kill(process, SIGTERM)
        while line() != nil {}
        pclose(output)
    }
}

/// httpbin under gunicorn, from the environment created by `deploy/venv`.
final class HTTPBin: Sendable {
    let url: String
    private let program: TestProgram

    /// Returns once it is listening.
    init() throws {
        let python = try #require(TestProgram.python)
        let script = """
            \(TestProgram.hearsSignals)
            import sys
            from gunicorn.app.wsgiapp import run
            sys.argv[1:] = "--bind 127.0.0.1:0 --threads 4 --no-control-socket httpbin:app".split()
            run()
            """
        program = try TestProgram("'\(python)' -c '\(script)'")
        var found: String?
        while found == nil, let line = program.line() {
            guard let start = line.firstRange(of: "Listening at: ") else { continue }
            found = line[start.upperBound...].split(separator: " ").first.map(String.init)
        }
        url = try #require(found, "gunicorn did not start")
    }

    func close() { program.close() }
}
