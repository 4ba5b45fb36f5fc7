import CLinux

/// `errno` of this thread; read it right after the call that set it.
var systemError: Int32 { __errno_location().pointee }
