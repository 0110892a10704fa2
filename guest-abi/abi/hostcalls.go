package abi

// ValueType is the type of a host call's parameter or result.
type ValueType byte

// The value types host calls use. No host call takes floats or vectors.
const (
	I32 ValueType = 0x7f
	I64 ValueType = 0x7e
)

// HostCall is one function the host offers to guests.
type HostCall struct {
	Number  uint16      // names the call in records; never reused
	Module  string      // ModuleWrit or ModuleWASI
	Name    string      // import name
	Params  []ValueType // in order
	Results []ValueType // none or one
}

// HostCalls lists every function a guest may import, by number. Numbers below
// 100 are writ_v1, from 100 on wasi_snapshot_preview1 in the order of its
// specification. The list only grows.
var HostCalls = []HostCall{
	{1, ModuleWrit, "clock_now", nil, []ValueType{I64}},
	{2, ModuleWrit, "random_fill", []ValueType{I32, I32}, []ValueType{I32}},
	{3, ModuleWrit, "effect", []ValueType{I32, I32, I32, I32}, []ValueType{I64}},
	{4, ModuleWrit, "response_read", []ValueType{I64, I32, I32}, []ValueType{I64}},
	{5, ModuleWrit, "dataset_size", []ValueType{I32, I32}, []ValueType{I64}},
	{6, ModuleWrit, "dataset_read", []ValueType{I32, I32, I64, I32, I32}, []ValueType{I64}},
	{7, ModuleWrit, "artifact_put", []ValueType{I32, I32, I32, I32, I32}, []ValueType{I64}},
	{8, ModuleWrit, "artifact_size", []ValueType{I32, I32}, []ValueType{I64}},
	{9, ModuleWrit, "artifact_read", []ValueType{I32, I32, I64, I32, I32}, []ValueType{I64}},
	{10, ModuleWrit, "log", []ValueType{I32, I32, I32}, []ValueType{I32}},

	{100, ModuleWASI, "args_get", []ValueType{I32, I32}, []ValueType{I32}},
	{101, ModuleWASI, "args_sizes_get", []ValueType{I32, I32}, []ValueType{I32}},
	{102, ModuleWASI, "environ_get", []ValueType{I32, I32}, []ValueType{I32}},
	{103, ModuleWASI, "environ_sizes_get", []ValueType{I32, I32}, []ValueType{I32}},
	{104, ModuleWASI, "clock_res_get", []ValueType{I32, I32}, []ValueType{I32}},
	{105, ModuleWASI, "clock_time_get", []ValueType{I32, I64, I32}, []ValueType{I32}},
	{106, ModuleWASI, "fd_advise", []ValueType{I32, I64, I64, I32}, []ValueType{I32}},
	{107, ModuleWASI, "fd_allocate", []ValueType{I32, I64, I64}, []ValueType{I32}},
	{108, ModuleWASI, "fd_close", []ValueType{I32}, []ValueType{I32}},
	{109, ModuleWASI, "fd_datasync", []ValueType{I32}, []ValueType{I32}},
	{110, ModuleWASI, "fd_fdstat_get", []ValueType{I32, I32}, []ValueType{I32}},
	{111, ModuleWASI, "fd_fdstat_set_flags", []ValueType{I32, I32}, []ValueType{I32}},
	{112, ModuleWASI, "fd_fdstat_set_rights", []ValueType{I32, I64, I64}, []ValueType{I32}},
	{113, ModuleWASI, "fd_filestat_get", []ValueType{I32, I32}, []ValueType{I32}},
	{114, ModuleWASI, "fd_filestat_set_size", []ValueType{I32, I64}, []ValueType{I32}},
	{115, ModuleWASI, "fd_filestat_set_times", []ValueType{I32, I64, I64, I32}, []ValueType{I32}},
	{116, ModuleWASI, "fd_pread", []ValueType{I32, I32, I32, I64, I32}, []ValueType{I32}},
	{117, ModuleWASI, "fd_prestat_get", []ValueType{I32, I32}, []ValueType{I32}},
	{118, ModuleWASI, "fd_prestat_dir_name", []ValueType{I32, I32, I32}, []ValueType{I32}},
	{119, ModuleWASI, "fd_pwrite", []ValueType{I32, I32, I32, I64, I32}, []ValueType{I32}},
	{120, ModuleWASI, "fd_read", []ValueType{I32, I32, I32, I32}, []ValueType{I32}},
	{121, ModuleWASI, "fd_readdir", []ValueType{I32, I32, I32, I64, I32}, []ValueType{I32}},
	{122, ModuleWASI, "fd_renumber", []ValueType{I32, I32}, []ValueType{I32}},
	{123, ModuleWASI, "fd_seek", []ValueType{I32, I64, I32, I32}, []ValueType{I32}},
	{124, ModuleWASI, "fd_sync", []ValueType{I32}, []ValueType{I32}},
	{125, ModuleWASI, "fd_tell", []ValueType{I32, I32}, []ValueType{I32}},
	{126, ModuleWASI, "fd_write", []ValueType{I32, I32, I32, I32}, []ValueType{I32}},
	{127, ModuleWASI, "path_create_directory", []ValueType{I32, I32, I32}, []ValueType{I32}},
	{128, ModuleWASI, "path_filestat_get", []ValueType{I32, I32, I32, I32, I32}, []ValueType{I32}},
	{129, ModuleWASI, "path_filestat_set_times", []ValueType{I32, I32, I32, I32, I64, I64, I32}, []ValueType{I32}},
	{130, ModuleWASI, "path_link", []ValueType{I32, I32, I32, I32, I32, I32, I32}, []ValueType{I32}},
	{131, ModuleWASI, "path_open", []ValueType{I32, I32, I32, I32, I32, I64, I64, I32, I32}, []ValueType{I32}},
	{132, ModuleWASI, "path_readlink", []ValueType{I32, I32, I32, I32, I32, I32}, []ValueType{I32}},
	{133, ModuleWASI, "path_remove_directory", []ValueType{I32, I32, I32}, []ValueType{I32}},
	{134, ModuleWASI, "path_rename", []ValueType{I32, I32, I32, I32, I32, I32}, []ValueType{I32}},
	{135, ModuleWASI, "path_symlink", []ValueType{I32, I32, I32, I32, I32}, []ValueType{I32}},
	{136, ModuleWASI, "path_unlink_file", []ValueType{I32, I32, I32}, []ValueType{I32}},
	{137, ModuleWASI, "poll_oneoff", []ValueType{I32, I32, I32, I32}, []ValueType{I32}},
	{138, ModuleWASI, "proc_exit", []ValueType{I32}, nil},
	{139, ModuleWASI, "proc_raise", []ValueType{I32}, []ValueType{I32}},
	{140, ModuleWASI, "sched_yield", nil, []ValueType{I32}},
	{141, ModuleWASI, "random_get", []ValueType{I32, I32}, []ValueType{I32}},
	{142, ModuleWASI, "sock_accept", []ValueType{I32, I32, I32}, []ValueType{I32}},
	{143, ModuleWASI, "sock_recv", []ValueType{I32, I32, I32, I32, I32, I32}, []ValueType{I32}},
	{144, ModuleWASI, "sock_send", []ValueType{I32, I32, I32, I32, I32}, []ValueType{I32}},
	{145, ModuleWASI, "sock_shutdown", []ValueType{I32, I32}, []ValueType{I32}},
}

// CallRefill is the number under which a stop at an empty fuel slice is
// recorded. No guest can import it: preparation appends it.
const CallRefill uint16 = 255
